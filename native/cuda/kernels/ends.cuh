// The ends of an item's connections on one channel, as the block that works on it has them in shared memory.
#pragma once
#include "cuda/kernels/memory.cuh"
#include "plan/launch_format.h"

namespace ncclrun::cuda {

struct End {
  char* slots;     // a sender's lie in the peer's memory, a receiver's in our own
  uint32_t* tail;  // protocol Simple: beside the slots
  uint32_t* head;  // a sender polls its own memory, a receiver stores into the peer's
  uint32_t step;   // next one
  uint32_t freed;  // sender: steps that the receiver had freed when we last looked
  uint64_t bytes;
  uint32_t told;  // sender, protocol Simple: steps handed on so far

  __device__ __forceinline__ bool isNext(uint32_t one) const {
    return *static_cast<const volatile uint32_t*>(&told) == one;
  }
};

// What the waits of a block have in common, in shared memory.
struct Waits {
  bool aborted;   // once true, every wait ends at once
  bool reported;  // a wait was long enough to be told
};
struct Ends : Waits {
  uint32_t steps;  // protocol Simple: the slots of each connection
  uint32_t stepBytes;
  End receives[kMaxPeers];
  End sends[kMaxPeers];
};

// Waits give up when the host has raised one of its words. Those are far away: a warp looks once in a while only.
// Nothing here has an address: what a wait counts stays in registers.
class Patience {
 public:
  __device__ Patience(const Launch& launch, Waits& waits) : launch_(launch), waits_(waits) {}
  // To be called each time that something was not there yet. True: give up.
  __device__ __forceinline__ bool over() {
    if (*static_cast<volatile bool*>(&waits_.aborted)) return true;
    letOthersRun();
    if (++rounds_ % kRoundsPerLook != 0) return false;
    looks_ = look(launch_, waits_, looks_);
    return looks_.over;
  }

 private:
  static constexpr uint64_t kLookNanoseconds = 500'000;
  struct Looks {
    uint64_t last = 0;   // the clock when we last looked
    uint64_t begun = 0;  // when it was first told of this wait
    bool over = false;
  };

  static __device__ __noinline__ Looks look(const Launch& launch, Waits& waits, Looks looks) {
    const uint64_t now = nanoseconds();
    if (looks.last == 0) looks.last = now;
    if (now - looks.last < kLookNanoseconds) return looks;
    looks.last = now;
    // One lane for all that wait.
    if ((threadIdx.x & 31) != __ffs(__activemask()) - 1) return looks;
    if (launch.report.state != nullptr) {
      *static_cast<volatile bool*>(&waits.reported) = true;
      if (looks.begun == 0) looks.begun = now;
      storeVolatile(launch.report.since, looks.begun + launch.report.clockOffset);
      storeVolatile(launch.report.state, launch.report.waiting);
    }
    looks.over = (launch.aborted != nullptr && loadVolatile(launch.aborted) > 1) ||
                 (launch.aborted2 != nullptr && loadVolatile(launch.aborted2) > 1);
    if (looks.over) *static_cast<volatile bool*>(&waits.aborted) = true;
    return looks;
  }

  const Launch& launch_;
  Waits& waits_;
  uint32_t rounds_ = 0;
  Looks looks_;
};

// By the block's first thread, behind all that the block has stored.
__device__ __forceinline__ void endBlock(const Launch& launch, const Waits& waits) {
  if (waits.reported) storeVolatile(launch.report.state, launch.report.idle);
  if (launch.ended != nullptr) addRelease(launch.ended, 1);
}

// Steps are counted modulo 2^32.
__device__ __forceinline__ bool reached(uint32_t counter, uint32_t wanted) { return int32_t(counter - wanted) >= 0; }

// Waits until a sender's step has a free slot among `steps`. By one thread.
__device__ __forceinline__ void awaitCredit(End& end, uint32_t step, uint32_t steps, Patience& patience) {
  uint32_t freed = end.freed;
  if (reached(freed + steps, step + 1)) return;
  const uint32_t* const head = end.head;
  do {
    freed = loadVolatile(head);
  } while (!reached(freed + steps, step + 1) && !patience.over());
  end.freed = loadAcquire(head);
}

// Protocol Simple: the receiver may read the sender's step, once it has been told of those before. By one thread,
// behind all that was stored; not after an abort.
__device__ __forceinline__ void handOnStep(End& end, uint32_t step, uint64_t bytes, Patience& patience) {
  while (!end.isNext(step)) {
    if (patience.over()) return;
  }
  __threadfence_block();
  end.bytes += bytes;
  storeRelease(end.tail, step + 1);
  __threadfence_block();
  *static_cast<volatile uint32_t*>(&end.told) = step + 1;
}

// One end of a connection, from the GPU's memory and back. `slots`: where they begin in the regions; `index`: of its
// state.
template <uint32_t kProtocol>
__device__ __forceinline__ End loadEnd(const Launch& launch, RegionPair regions, uint32_t slots, uint32_t index,
                                       bool receives) {
  char* const data = (receives ? regions.in : regions.out) + slots;
  auto* const tail = &reinterpret_cast<Region*>(receives ? regions.in : regions.out)->tail;
  auto* const head = &reinterpret_cast<Region*>(receives ? regions.out : regions.in)->head[kProtocol];
  if (receives) {
    const ReceiveState& state = launch.receives[index];
    return {data, tail, head, state.step[kProtocol], 0, state.bytes, 0};
  }
  const SendState& state = launch.sends[index];
  const uint32_t step = state.step[kProtocol];
  return {data, tail, head, step, state.head[kProtocol], state.bytes, step};
}
template <uint32_t kProtocol>
__device__ __forceinline__ void storeEnd(const Launch& launch, uint32_t index, bool receives, const End& end) {
  if (receives) {
    ReceiveState& state = launch.receives[index];
    state.step[kProtocol] = end.step;
    state.bytes = end.bytes;
  } else {
    SendState& state = launch.sends[index];
    state.step[kProtocol] = end.step;
    state.head[kProtocol] = end.freed;
    state.bytes = end.bytes;
  }
}

// The same of the connection of a pair.
__device__ __forceinline__ uint32_t pairState(const Launch& launch, uint32_t channel, uint32_t peer) {
  return channel * launch.ranks + peer;
}
template <uint32_t kProtocol>
__device__ __forceinline__ End loadPairEnd(const Launch& launch, uint32_t channel, uint32_t peer, bool receives) {
  const uint64_t at = regionOffset(launch.slots, channel);
  return loadEnd<kProtocol>(launch, {launch.in[peer] + at, launch.out[peer] + at}, slotOffset(kProtocol, launch.slots),
                            pairState(launch, channel, peer), receives);
}

// An end of each of the item's connections on one channel. By the first two warps; the barriers before and after are
// the caller's.
template <uint32_t kProtocol>
class EndStore {
 public:
  __device__ EndStore(const Launch& launch, const Item& item, uint32_t channel)
      : launch_(launch),
        place_(launch.places + channel),
        channel_(channel),
        lane_(threadIdx.x & 31),
        receives_(threadIdx.x < 32),
        // Lines of rings lie between pairs.
        usesRing_(kProtocol == 0 && item.usesRing) {
    mine_ = receives_ ? lane_ < item.receiveCount : threadIdx.x < 64 && lane_ < item.sendCount;
    if (!mine_ || usesRing_) return;
    if (item.usesRing) {
      peer_ = receives_ ? place_->previous : place_->next;
    } else {
      peer_ = receives_ ? item.receives[lane_] : item.sends[lane_];
    }
  }

  __device__ void load(Ends& ends) const {
    if (kProtocol == 0 && threadIdx.x == 0) {
      ends.steps = usesRing_ ? place_->steps : launch_.slots.pairSteps;
      ends.stepBytes = usesRing_ ? place_->stepBytes : pairStepBytes(launch_.slots, channel_);
    }
    if (!mine_) return;
    endOf(ends) = usesRing_ ? loadEnd<kProtocol>(launch_, receives_ ? place_->fromPrevious : place_->toNext,
                                                 place_->slots, place_->state, receives_)
                            : loadPairEnd<kProtocol>(launch_, channel_, peer_, receives_);
    // Launches of one turn may have read what they did not tell: a sender that waits for it would not be told later
    // either, as long as we wait for it ourselves.
    if (kProtocol != 0 && receives_) storeCredit(endOf(ends).head, endOf(ends).step);
  }
  __device__ void store(Ends& ends) const {
    if (!mine_) return;
    const uint32_t index = usesRing_ ? place_->state : pairState(launch_, channel_, peer_);
    storeEnd<kProtocol>(launch_, index, receives_, endOf(ends));
  }

 private:
  __device__ End& endOf(Ends& ends) const { return (receives_ ? ends.receives : ends.sends)[lane_]; }

  const Launch& launch_;
  const RingPlace* const place_;
  const uint32_t channel_;
  const uint32_t lane_;
  const bool receives_;
  const bool usesRing_;
  bool mine_;
  uint32_t peer_ = 0;
};

}  // namespace ncclrun::cuda
