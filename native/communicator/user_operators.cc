#include "communicator/user_operators.h"

#include <algorithm>

namespace ncclrun {

ncclRedOp_t UserOperators::add(const UserOperator& made) {
  std::lock_guard lock(mutex_);
  auto slot = std::find(made_.begin(), made_.end(), std::nullopt);
  if (slot == made_.end()) slot = made_.insert(slot, std::nullopt);
  *slot = made;
  return ncclRedOp_t(int(ncclNumOps) + int(slot - made_.begin()));
}

bool UserOperators::remove(int number) {
  std::lock_guard lock(mutex_);
  const auto index = size_t(number - int(ncclNumOps));
  if (number < int(ncclNumOps) || index >= made_.size() || !made_[index].has_value()) return false;
  made_[index].reset();
  return true;
}

std::optional<UserOperator> UserOperators::find(int number) const {
  std::lock_guard lock(mutex_);
  const auto index = size_t(number - int(ncclNumOps));
  return number < int(ncclNumOps) || index >= made_.size() ? std::nullopt : made_[index];
}

}  // namespace ncclrun
