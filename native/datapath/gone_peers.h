// Peers that have left a communicator while other ranks continue with it, as the agent reports: each with the status
// that ends a wait for it. A rank of the same host that left in order publishes that itself (Doorbell::left), one of
// another host on its connections.
#pragma once
#include <atomic>
#include <map>
#include <mutex>
#include <string>

#include "base/error.h"

namespace ncclrun {

// The status for ranks that need a rank of their own host that has aborted, before the agent reports more.
inline Status abortedBy(const std::string& name) { return {ncclRemoteError, name + " aborted the communicator"}; }

class GonePeers {
 public:
  // The first reason stays. Any thread.
  void add(uint32_t rank, const Status& why) {
    std::lock_guard lock(mutex_);
    all_.try_emplace(rank, why);
    any_.store(true, std::memory_order_seq_cst);
  }
  bool any() const { return any_.load(std::memory_order_seq_cst); }
  // Success: the peer is not known to be gone. Any thread.
  Status why(uint32_t rank) const {
    if (!any_.load(std::memory_order_seq_cst)) return {};
    std::lock_guard lock(mutex_);
    const auto found = all_.find(rank);
    return found == all_.end() ? Status{} : found->second;
  }

 private:
  std::atomic<bool> any_{false};
  mutable std::mutex mutex_;
  std::map<uint32_t, Status> all_;
};

}  // namespace ncclrun
