#include "datapath/interrupt.h"

#include <cstring>

namespace ncclrun {

void Interrupt::raise(const Status& why, uint32_t lostPeer, FailureScope scope) {
  {
    std::lock_guard lock(mutex_);
    if (local_.load(std::memory_order_relaxed)) return;
    why_ = why;
    lostPeer_ = lostPeer;
    scope_ = scope;
    local_.store(true, std::memory_order_seq_cst);
  }
  own_.sequence.fetch_add(1, std::memory_order_seq_cst);
  futexWakeAll(own_.sequence);
}

FailureScope Interrupt::scope() const {
  std::lock_guard lock(mutex_);
  return scope_;
}

Status Interrupt::differing() const {
  std::lock_guard lock(mutex_);
  return why_.code == ncclInvalidUsage && scope_ == FailureScope::all ? why_ : Status{};
}

Status Interrupt::status() const {
  const uint32_t flag = block_.flag.load(std::memory_order_acquire);
  const bool local = local_.load(std::memory_order_acquire);
  if (!local && flag < 2) return {};
  std::lock_guard lock(mutex_);
  const uint32_t culprit = local && lostPeer_ != kNobody ? lostPeer_ : flag >= 2 ? block_.rank : kNobody;
  if (culprit != kNobody) telemetry_.lost(culprit);
  if (local) return why_;
  const uint32_t code = flag - 2;
  const bool known = code != ncclSuccess && code < ncclNumResults;
  return {known ? ncclResult_t(code) : ncclRemoteError,
          std::string(block_.sentence, strnlen(block_.sentence, sizeof block_.sentence))};
}

}  // namespace ncclrun
