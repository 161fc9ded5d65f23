// The regions between this rank's GPU and ranks of other hosts: pinned memory of this host, which kernels use as they
// do regions of GPUs of this one, while the proxy plays the peer. With GPUDirect the slots lie in the GPU's memory.
#pragma once
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <tuple>
#include <vector>

#include "cuda/net/gpu_direct.h"
#include "cuda/net/gpu_slots.h"
#include "dl/gpu.h"
#include "net/proxy/device_ring.h"
#include "plan/launch_format.h"
#include "plan/plan_view.h"

namespace ncclrun::cuda {

class NetRegions final : public DeviceRings {
 public:
  // isBusy: whether launches have not ended. By any thread.
  NetRegions(const Gpu& gpu, const PlanView& plan, uint32_t rank, std::function<bool()> isBusy);
  ~NetRegions();
  NetRegions(const NetRegions&) = delete;
  NetRegions& operator=(const NetRegions&) = delete;

  // Of a connection, as ringOf() has it.
  using UseOf = std::function<GpuDirect::Use(uint32_t peer, uint32_t channel, bool sends)>;
  // Those of the rings, with neighbours on other hosts. directs: some connection uses GPUDirect.
  Status allocate(UseOf useOf, bool directs);
  bool directs() const { return directs_; }
  uint64_t gpuBytes() const { return gpuSlots_.bytes(); }
  // Those of a pair, which are made with the first operation of the two ranks. Not by the proxy's thread.
  Status makePair(uint32_t peer);
  // Those of a network that reduces on the first channels.
  Status makeGroups(uint32_t channels);
  // The pairs' regions by rank, as kernels read them: what makePair() and enter() have put there.
  const RegionPair* pairs() const { return pairs_; }
  void enter(uint32_t peer, const RegionPair& regions) { pairs_[peer] = regions; }

  // As Regions has them, of a peer on another host: 0 where there are none.
  Pointer out(uint32_t peer) const { return pointerTo(of(peer).out); }
  Pointer in(uint32_t peer) const { return pointerTo(of(peer).in); }
  Pointer ringOut(uint32_t peer) const { return pointerTo(of(peer).ringOut); }
  Pointer ringIn(uint32_t peer) const { return pointerTo(of(peer).ringIn); }

  // Receives lost peers, and what peers have called, from now on; null: nobody does, and no call is under way.
  using OnGone = std::function<void(uint32_t peer, const Status& why, bool hasAborted)>;
  using OnCall = std::function<void(uint32_t peer, const StepCall& call)>;
  void setHandlers(OnGone onGone, OnCall onCall);
  // Of a peer that has left in order, as Doorbell::left has it; 0: it is there. Any thread.
  uint64_t leftAt(uint32_t peer) const;
  bool anyLeft() const { return anyLeft_.load(std::memory_order_acquire); }

  DeviceRing ringOf(uint32_t peer, uint32_t channel, bool sends) override;
  DeviceRing ringOfGroup(uint32_t channel, bool sends, bool inHost) override;
  bool areActive() override { return isBusy_(); }
  void onGone(uint32_t peer, const Status& why) override { pass(peer, why, false); }
  void onAborted(uint32_t peer, const Status& why) override { pass(peer, why, true); }
  void onLeft(uint32_t peer, uint64_t collectives) override;
  void onCall(uint32_t peer, const StepCall& call) override;

 private:
  struct Peer {
    std::byte *out = nullptr, *in = nullptr, *ringOut = nullptr, *ringIn = nullptr;
  };
  Peer of(uint32_t peer) const {
    const auto found = peers_.find(peer);
    return found == peers_.end() ? Peer() : found->second;
  }
  static Pointer pointerTo(std::byte* address) { return reinterpret_cast<Pointer>(address); }
  bool isNeighbour(uint32_t peer) const;
  Status makePair(uint32_t peer, uint32_t channels, uint64_t isRemote);
  void pass(uint32_t peer, const Status& why, bool hasAborted);
  // Zeroed, for good as long as this object lives.
  Status take(uint64_t bytes, std::byte*& out);
  // One direction's slots on a channel.
  struct Place {
    Region* data;
    Region* credit;
    std::byte* slots;  // behind the region's header
    std::byte* lines;  // of protocol LL; null: rings have none
    uint32_t steps, stride;
  };
  Place placeOf(uint32_t peer, uint32_t channel, bool sends) const;
  DeviceRing ringInHost(const Place& place) const;
  // Puts slots of such connections into GPU memory as uses GPUDirect; `channels` of a ring or a pair.
  Status placeInGpu(uint32_t peer, uint32_t channels, bool isPair);

  const Gpu gpu_;
  const PlanView& plan_;
  const uint32_t rank_;
  const Slots slots_;
  const std::function<bool()> isBusy_;
  std::map<uint32_t, Peer> peers_;
  RegionPair* pairs_ = nullptr;
  std::vector<void*> pieces_;     // of pinned memory
  std::span<std::byte> untaken_;  // of the last one
  UseOf useOf_;
  bool directs_ = false;
  GpuSlots gpuSlots_;
  struct InGpu {
    GpuSlots::Range range;
    bool flushes;
  };
  std::map<std::tuple<uint32_t, uint32_t, bool>, InGpu> inGpu_;  // by peer, channel and direction
  std::atomic<bool> anyLeft_{false};
  mutable std::mutex mutex_;  // of what follows
  OnGone onGone_;
  OnCall onCall_;
  std::map<uint32_t, uint64_t> left_;
};

}  // namespace ncclrun::cuda
