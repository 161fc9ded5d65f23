#include "datapath/remote_calls.h"

namespace ncclrun {
namespace {

void keep(std::map<uint64_t, StepCall>& calls, const StepCall& call, size_t max) {
  calls.insert_or_assign(call.number, call);
  if (calls.size() > max) calls.erase(calls.begin());
}

}  // namespace

std::optional<uint32_t> RemoteCalls::listener() const {
  const auto self = plan_.peer(rank_);
  const uint32_t hosts = plan_.header().hosts;
  if (hosts == 1 || self.localIndex != 0) return std::nullopt;
  return plan_.member((self.host + 1) % hosts, 0);
}

Status RemoteCalls::add(const StepCall& own) {
  std::lock_guard lock(mutex_);
  keep(own_, own, kMaxCalls);
  return compare(own.number);
}

Status RemoteCalls::addFrom(uint32_t rank, const StepCall& theirs) {
  std::lock_guard lock(mutex_);
  from_ = rank;
  keep(theirs_, theirs, kMaxCalls);
  return compare(theirs.number);
}

Status RemoteCalls::compare(uint64_t number) const {
  const auto own = own_.find(number), theirs = theirs_.find(number);
  if (own == own_.end() || theirs == theirs_.end() || own->second.hash == theirs->second.hash) return {};
  return {ncclInvalidUsage,
          describeMismatch(theirs->second, plan_.describe(from_), {plan_.describe(rank_), own->second})};
}

}  // namespace ncclrun
