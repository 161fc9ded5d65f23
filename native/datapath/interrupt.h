// Ends every wait of one rank of one communicator: after its own abort, a broken connection, or the abort flag of its
// host.
#pragma once
#include <atomic>
#include <mutex>
#include <string>

#include "base/error.h"
#include "datapath/telemetry.h"
#include "plan/segment.h"

namespace ncclrun {

class Interrupt {
 public:
  Interrupt(AbortBlock& block, Doorbell& own, ncclrunTelemetrySlot* slot = nullptr)
      : block_(block), own_(own), telemetry_(slot) {}

  bool raised() const {
    return local_.load(std::memory_order_acquire) || block_.flag.load(std::memory_order_acquire) >= 2;
  }
  static constexpr uint32_t kNobody = ~0u;

  // Ends the waits of this rank; the first reason stays. `lostPeer`: the rank that was lost, or its connection. Any
  // thread.
  void raise(const Status& why, uint32_t lostPeer = kNobody, FailureScope scope = FailureScope::all);
  FailureScope scope() const;
  // ncclInvalidUsage if it was raised because the calls of this communicator's ranks differ, which ends it for all of
  // them; else success.
  Status differing() const;
  // The reason, or success while nothing is raised. The caller fails for it: from then on the telemetry page shows
  // which rank was lost, by its connection or as in the abort flag's block.
  Status status() const;

 private:
  AbortBlock& block_;
  Doorbell& own_;
  std::atomic<bool> local_{false};
  mutable std::mutex mutex_;
  Status why_;
  uint32_t lostPeer_ = kNobody;
  FailureScope scope_ = FailureScope::all;
  mutable Telemetry telemetry_;
};

}  // namespace ncclrun
