// Sizes of elements.
#pragma once
#include <cstddef>

#include "nccl.h"

namespace ncclrun {

// Bytes of one element; 0 for a type that does not exist.
inline size_t elementBytes(ncclDataType_t type) {
  constexpr size_t kBytes[ncclNumTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  const auto number = static_cast<size_t>(type);
  return number < ncclNumTypes ? kBytes[number] : 0;
}

}  // namespace ncclrun
