// What a rank knows of the peers that have left the communicator, from their own goodbyes and from connections that
// broke. Agents report such peers too (datapath/gone_peers.h), with more detail and later.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "nccl.h"

namespace ncclrun {

struct PeerState {
  bool lost = false;                  // else it has said goodbye
  ncclResult_t result = ncclSuccess;  // of the goodbye: with what waits for the peer end; success: it left in order
  std::string sentence;               // how the connection broke, or how the ranks' calls differ
  uint64_t since = 0;                 // nanoseconds of the monotonic clock
  uint64_t collectives = 0;           // of a goodbye in order, as Doorbell::left has it; 0: not said
  bool isLeaving = false;             // not gone yet: completes what this rank receives
};

// Any thread.
class PeerStates {
 public:
  // The first state stays, but for isLeaving; true if this is it.
  bool set(uint32_t peer, const PeerState& state) {
    std::lock_guard lock(mutex_);
    const auto [found, isFirst] = all_.try_emplace(peer, state);
    found->second.isLeaving = found->second.isLeaving && state.isLeaving;
    any_.store(true, std::memory_order_seq_cst);
    return isFirst;
  }
  // Nothing: the peer is there, as far as this rank knows.
  std::optional<PeerState> of(uint32_t peer) const {
    if (!any_.load(std::memory_order_seq_cst)) return {};
    std::lock_guard lock(mutex_);
    const auto found = all_.find(peer);
    return found == all_.end() ? std::optional<PeerState>() : found->second;
  }
  bool hasGone(uint32_t peer) const {
    const std::optional<PeerState> state = of(peer);
    return state.has_value() && !state->isLeaving;
  }

 private:
  std::atomic<bool> any_{false};
  mutable std::mutex mutex_;
  std::map<uint32_t, PeerState> all_;
};

}  // namespace ncclrun
