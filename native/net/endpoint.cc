#include "net/endpoint.h"

namespace ncclrun {

std::string Endpoint::describeWrong(uint32_t payload) const {
  const StepCall* theirs = calls_ != nullptr ? &calls_[step_ % facts_.steps] : nullptr;
  const StepCall& ours = current_.call;
  if (theirs != nullptr && !sameCall(*theirs, ours)) return describeMismatch(*theirs, facts_.peerName, current_);
  const std::string number =
      ours.isCollective() ? "the communicator’s collective number " + std::to_string(ours.number) + ", " : "";
  return facts_.peerName + " sent " + std::to_string(arrived()) + " bytes where " + current_.rank + " expects " +
         std::to_string(payload) + " in " + number + describe(ours) +
         ": the ranks’ calls differ in kind, order, count or type";
}

Status Endpoint::leftInOrder() const {
  return {ncclInvalidUsage, "the ranks’ calls differ: " + current_.rank + " called " + describe(current_.call) +
                                ", which " + facts_.peerName + " did not before ncclCommFinalize"};
}

}  // namespace ncclrun
