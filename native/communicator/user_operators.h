// The operators that a program made for one communicator (ncclRedOpCreatePreMulSum). Their numbers follow NCCL's own.
#pragma once
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "nccl.h"

namespace ncclrun {

struct UserOperator {
  ncclDataType_t type;
  const void* scalarAt;  // read when an operation runs; null: `scalar` was read when it was made
  uint64_t scalar;       // the bytes of one element
};

class UserOperators {
 public:
  ncclRedOp_t add(const UserOperator& made);
  // False if there is none of that number.
  bool remove(int number);
  std::optional<UserOperator> find(int number) const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::optional<UserOperator>> made_;  // the first has number ncclNumOps
};

}  // namespace ncclrun
