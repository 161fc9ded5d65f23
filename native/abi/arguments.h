// Arguments as the caller gave them: any number may stand where an enumeration is due.
#pragma once
#include <cstddef>
#include <cstring>

#include "nccl.h"

namespace ncclrun {

// Only after a check is the number one of the enumeration.
template <typename Enumeration>
int raw(const Enumeration& value) {
  int number;
  static_assert(sizeof number == sizeof value);
  std::memcpy(&number, &value, sizeof number);
  return number;
}

inline constexpr size_t kTypeBytes[ncclNumTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

}  // namespace ncclrun
