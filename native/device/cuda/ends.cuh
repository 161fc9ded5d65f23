// The ends of an item's connections on one channel, as the block that works on it has them in shared memory.
#pragma once
#include "device/cuda/launch_format.h"
#include "device/cuda/memory.cuh"

namespace ncclrun::cuda {

struct End {
  char* slots;     // a sender's lie in the peer's memory, a receiver's in our own
  uint32_t* tail;  // protocol Simple: beside the slots
  uint32_t* head;  // a sender polls its own memory, a receiver stores into the peer's
  uint32_t step;   // next one
  uint32_t freed;  // sender: steps that the receiver had freed when we last looked
  uint64_t bytes;
};

struct Ends {
  End receives[kMaxPeers];
  End sends[kMaxPeers];
  bool aborted;   // once true, every wait ends at once
  bool reported;  // a wait was long enough to be told
};

// Waits give up when the host has raised one of its words. Those are far away: a warp looks once in a while only.
class Patience {
 public:
  __device__ Patience(const Launch& launch, Ends& ends) : launch_(launch), ends_(ends) {}
  // To be called each time that something was not there yet. True: give up.
  __device__ __forceinline__ bool over() {
    if (*static_cast<volatile bool*>(&ends_.aborted)) return true;
    if (++rounds_ % kRoundsPerLook != 0) return false;
    return look();
  }

 private:
  static constexpr uint32_t kRoundsPerLook = 1024;
  static constexpr uint64_t kLookNanoseconds = 500'000;

  __device__ __noinline__ bool look() {
    const uint64_t now = nanoseconds();
    if (rounds_ == kRoundsPerLook) last_ = now;
    if (now - last_ < kLookNanoseconds) return false;
    last_ = now;
    // One lane for all that wait.
    if ((threadIdx.x & 31) != __ffs(__activemask()) - 1) return false;
    if (launch_.report.state != nullptr) {
      *static_cast<volatile bool*>(&ends_.reported) = true;
      if (begun_ == 0) begun_ = now;
      storeVolatile(launch_.report.since, begun_ + launch_.report.clockOffset);
      storeVolatile(launch_.report.state, launch_.report.waiting);
    }
    const bool aborted = (launch_.aborted != nullptr && loadVolatile(launch_.aborted) > 1) ||
                         (launch_.aborted2 != nullptr && loadVolatile(launch_.aborted2) > 1);
    if (aborted) *static_cast<volatile bool*>(&ends_.aborted) = true;
    return aborted;
  }

  const Launch& launch_;
  Ends& ends_;
  uint32_t rounds_ = 0;
  uint64_t last_ = 0;
  uint64_t begun_ = 0;  // when it was first told of this wait
};

// Steps are counted modulo 2^32.
__device__ __forceinline__ bool reached(uint32_t counter, uint32_t wanted) { return int32_t(counter - wanted) >= 0; }

// Waits until a sender's next step has a free slot among `steps`. By one thread.
__device__ __forceinline__ void awaitCredit(End& end, uint32_t steps, Patience& patience) {
  while (!reached(end.freed + steps, end.step + 1)) {
    end.freed = loadAcquire(end.head);
    if (!reached(end.freed + steps, end.step + 1) && patience.over()) return;
  }
}

// An end of each of the item's connections on one channel, from the GPU's memory and back. By the first two warps; the
// barriers before and after are the caller's.
template <uint32_t kProtocol>
class EndStore {
 public:
  __device__ EndStore(const Launch& launch, const Item& item, uint32_t channel, RingPlace place)
      : launch_(launch), channel_(channel) {
    const uint32_t i = threadIdx.x & 31;
    receives_ = threadIdx.x < 32 && i < item.receiveCount;
    sends_ = threadIdx.x >= 32 && threadIdx.x < 64 && i < item.sendCount;
    if (receives_) peer_ = item.usesRing ? place.previous : item.receives[i];
    if (sends_) peer_ = item.usesRing ? place.next : item.sends[i];
  }

  __device__ void load(Ends& ends) const {
    if (!receives_ && !sends_) return;
    const uint64_t at = channel_ * launch_.regionStride;
    char* const in = launch_.in[peer_] + at;
    char* const out = launch_.out[peer_] + at;
    char* const data = (receives_ ? in : out) + slotOffset(kProtocol, launch_.steps, launch_.stepBytes);
    auto* const tail = &reinterpret_cast<Region*>(receives_ ? in : out)->tail;
    auto* const head = &reinterpret_cast<Region*>(receives_ ? out : in)->head[kProtocol];
    if (receives_) {
      const ReceiveState& state = launch_.receives[index()];
      ends.receives[threadIdx.x] = {data, tail, head, state.step[kProtocol], 0, state.bytes};
    } else {
      const SendState& state = launch_.sends[index()];
      ends.sends[threadIdx.x & 31] = {data, tail, head, state.step[kProtocol], state.head[kProtocol], state.bytes};
    }
  }

  __device__ void store(const Ends& ends) const {
    if (receives_) {
      const End& end = ends.receives[threadIdx.x];
      ReceiveState& state = launch_.receives[index()];
      state.step[kProtocol] = end.step;
      state.bytes = end.bytes;
    }
    if (sends_) {
      const End& end = ends.sends[threadIdx.x & 31];
      SendState& state = launch_.sends[index()];
      state.step[kProtocol] = end.step;
      state.head[kProtocol] = end.freed;
      state.bytes = end.bytes;
    }
  }

 private:
  __device__ uint32_t index() const { return channel_ * launch_.ranks + peer_; }

  const Launch& launch_;
  const uint32_t channel_;
  uint32_t peer_ = 0;
  bool receives_, sends_;
};

}  // namespace ncclrun::cuda
