// Arguments as the caller gave them: any number may stand where an enumeration is due.
#pragma once
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

}  // namespace ncclrun
