// The memory through which the GPUs of one host communicate: every rank has receive regions in its GPU's memory, which
// the peers map (directly within a process, else by CUDA IPC). Where two GPUs cannot store into each other's memory,
// both directions between them lie in the host segment instead, as do the ring channels on which they are neighbours.
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

  // Allocates the memory, which `stream` zeroes, and publishes it; wait for the stream in between.
  Status allocate(Stream stream);
  Status publish();
  // Returns ncclInProgress until all peers' memory is reachable, directly or through the host. Never waits.
  Status connect();

  // Publishes the probe's result (cuda/kernels/probe.cuh): `words` of 128-byte lines did not arrive with their line.
  void publishTornLines(uint32_t words);
  // Returns ncclInProgress until all ranks have published; then `whole` is true if lines arrive whole between all
  // ranks.
  Status agreeOnLL128(bool& whole) const;
  // Publishes that this rank's kernels have ended and store nothing more into peers' memory. The plan may be gone by
  // then.
  void publishRest();
  bool allRest() const { return allAt(4); }

  // Regions of all channels as this GPU sees them, from this rank to a peer of this host and back.
  Pointer out(uint32_t peer) const { return of(peer).out; }
  Pointer in(uint32_t peer) const { return of(peer).in; }
  // The same for the rings: the region that this rank writes if the peer is its neighbour, and the one that it writes.
  Pointer ringOut(uint32_t peer) const { return of(peer).ringOut; }
  Pointer ringIn(uint32_t peer) const { return of(peer).ringIn; }
  plan::Transport transport(uint32_t peer) const { return of(peer).transport; }
  // True if every GPU reaches every other; the same at all ranks.
  bool allReach() const { return allReach_; }
  // True if no two ranks are threads that share a GPU, and thus the driver's hardware queues. The same at all ranks,
  // once connected.
  bool queuesApart() const;
  // Why a peer is reached through host memory; empty if none is.
  const std::string& why() const { return why_; }
  const Slots& slots() const { return slots_; }

 private:
  struct Peer {
    Pointer mapped = 0;  // its memory; of another process, it has to be unmapped
    bool isForeign = false;
    Pointer out = 0, in = 0, ringOut = 0, ringIn = 0;
    plan::Transport transport{};
  };
  const Peer& of(uint32_t rank) const { return peers_[localOf(rank)]; }
  uint32_t localOf(uint32_t rank) const { return plan_.peer(rank).localIndex; }
  // Among the regions of a rank, those that local rank `from` writes; behind those of all pairs, those of the rings.
  uint64_t offsetFor(uint32_t from, uint32_t to) const { return (from < to ? from : from - 1) * pairBytes(slots_); }
  uint64_t ringsAt() const { return (localRanks_ - 1) * pairBytes(slots_); }
  Status open(uint32_t peer);
  Status openAll();
  Status decide();
  Status useHostMemory(uint32_t peer);
  Status pinned(uint32_t fromLocal, uint32_t toLocal, uint64_t bytes, Pointer& out);
  bool allAt(uint32_t stage) const;

  const Gpu gpu_;
  const PlanView& plan_;
  const Segment& segment_;
  const uint32_t rank_, ownLocal_, localRanks_;
  const Slots slots_;
  enum class State { unpublished, published, opened, connected } state_ = State::unpublished;
  Memory own_;
  std::array<Peer, kMaxPeers> peers_{};       // by local index
  std::map<std::byte*, PinnedPages> pinned_;  // of the segment
  bool allReach_ = true;
  std::string why_;
};

}  // namespace ncclrun::cuda
