// The memory through which the GPUs of one host reach each other: every rank has regions for what its peers send it, in
// its GPU's memory, which the peers map (the same process: directly; others: CUDA IPC). Where two GPUs cannot store
// into each other's memory, both directions between them lie in the host segment instead, and of the rings those
// channels on which they are neighbours.
#pragma once
#include <array>
#include <map>
#include <string>

#include "dl/gpu_memory.h"
#include "plan/launch_format.h"
#include "plan/plan_view.h"
#include "plan/segment.h"

namespace ncclrun::cuda {

class Regions {
 public:
  Regions(const Gpu& gpu, const PlanView& plan, const Segment& segment, uint32_t rank);
  ~Regions();
  Regions(const Regions&) = delete;
  Regions& operator=(const Regions&) = delete;

  // Takes the memory and tells the peers. Zeroed by `stream`, which has to be waited for before.
  Status allocate(Stream stream);
  Status publish();
  // ncclInProgress until all peers' memory is reachable one way or the other. Never waits.
  Status connect();

  // What came of a look at how lines of 128 bytes arrive (cuda/kernels/probe.cuh): tells the peers.
  void publishSplitLines(uint32_t words);
  // ncclInProgress until all have told; then whether lines arrive whole between all ranks.
  Status agreeOnLines(bool& whole) const;
  // This rank's kernels have ended, and with them what they store into peers' memory.
  // The plan's text may be gone by then.
  void publishRest();
  bool allRest() const { return allAt(4); }

  // Of all channels, as this GPU sees them: from us to a peer, and back.
  Pointer out(uint32_t peer) const { return out_[peer]; }
  Pointer in(uint32_t peer) const { return in_[peer]; }
  // The same of the rings: what we write into where the peer is our neighbour, and what it writes into.
  Pointer ringOut(uint32_t peer) const { return ringOut_[peer]; }
  Pointer ringIn(uint32_t peer) const { return ringIn_[peer]; }
  plan::Transport transport(uint32_t peer) const { return transports_[peer]; }
  // Whether every GPU reaches every other: all ranks come to the same answer.
  bool allReach() const { return allReach_; }
  // Whether no two ranks are threads that share a GPU, whose streams share the driver's queues, too. The same at all
  // ranks, once connected.
  bool queuesApart() const;
  // Why a peer is reached through memory of the host; empty if none is.
  const std::string& why() const { return why_; }
  const Slots& slots() const { return slots_; }

 private:
  uint32_t localOf(uint32_t rank) const { return plan_.peer(rank).localIndex; }
  // Among the regions of a rank, those that local rank `from` writes; behind those of all pairs, those of the rings.
  uint64_t offsetFor(uint32_t from, uint32_t to) const { return (from < to ? from : from - 1) * pairBytes(slots_); }
  uint64_t ringsAt() const { return (plan_.header().ranks - 1) * pairBytes(slots_); }
  Status open(uint32_t peer);
  Status openAll();
  Status decide();
  Status useHostMemory(uint32_t peer);
  Status pinned(uint32_t fromLocal, uint32_t toLocal, uint64_t bytes, Pointer& out);
  bool allAt(uint32_t stage) const;

  const Gpu gpu_;
  const PlanView& plan_;
  const Segment& segment_;
  const uint32_t rank_, ownLocal_;
  const Slots slots_;
  enum class State { unpublished, published, opened, connected } state_ = State::unpublished;
  Memory own_;
  std::array<Pointer, kMaxPeers> mapped_{};  // peers' memory; those of other processes have to be unmapped
  std::array<bool, kMaxPeers> foreign_{};
  std::array<Pointer, kMaxPeers> out_{}, in_{}, ringOut_{}, ringIn_{};
  std::array<plan::Transport, kMaxPeers> transports_{};
  std::map<std::byte*, PinnedPages> pinned_;  // of the segment
  bool allReach_ = true;
  std::string why_;
};

}  // namespace ncclrun::cuda
