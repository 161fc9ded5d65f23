// Common part of protocols LL and LL128: the data carries flags that show when it has arrived. No barrier stands
// between a sender's load and the receiver's: each thread (LL) or warp (LL128) waits for its own lines only. The flag
// is the step's number, so that leftovers of an earlier step do not look like data.
#pragma once
#include "cuda/kernels/steps.cuh"

namespace ncclrun::cuda {

// True if a receiver that has finished `done` steps grants the sender credit, which it does for every half of the
// slots.
__device__ __forceinline__ bool isCreditDue(uint32_t done, uint32_t slots) { return (done & (slots / 2 - 1)) == 0; }

template <uint32_t kProtocol>
__device__ __forceinline__ uint32_t llSlotBytes(const Launch& launch) {
  return kProtocol == 1 ? launch.slots.llStepBytes : launch.slots.ll128StepBytes;
}

// Tracks the current step of each connection, and credit. All threads of a block call each function together.
template <uint32_t kProtocol>
class LLSteps {
 public:
  using Connections = cuda::Connections;
  static constexpr bool kSingleStep = false;

  __device__ LLSteps(const Launch& launch, Connections& connections)
      : launch_(launch), connections_(connections), steps_(connections) {}

  __device__ __forceinline__ uint32_t slots() const { return launch_.slots.lineSteps; }
  __device__ __forceinline__ uint32_t slotBytes() const { return llSlotBytes<kProtocol>(launch_); }

  // Flags and slots of the current step.
  __device__ __forceinline__ uint32_t receiveFlag(uint32_t i) const { return steps_.receive(i) + 1; }
  __device__ __forceinline__ uint32_t sendFlag(uint32_t i) const { return steps_.send(i) + 1; }
  template <class T>
  __device__ __forceinline__ T* receiveSlot(uint32_t i) const {
    return slotAt<T>(connections_.receives[i], steps_.receive(i));
  }
  template <class T>
  __device__ __forceinline__ T* sendSlot(uint32_t i) const {
    return slotAt<T>(connections_.sends[i], steps_.send(i));
  }
  __device__ __forceinline__ bool isRenewalDue(uint32_t i) const { return isRenewed(steps_.send(i), slots()); }

  // Waits until all sends [to, +sendCount) have a free slot. All threads agree on whether there is one. Returns false
  // after an abort, to all threads.
  __device__ __forceinline__ bool awaitCredits(const Move& move) {
    bool all = true;
    for (uint32_t i = move.to; i < move.to + move.sendCount; i++)
      all = all && reached(connections_.sends[i].freed + slots(), steps_.send(i) + 1);
    if (all) return true;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (uint32_t i = move.to; i < move.to + move.sendCount; i++)
        awaitCreditSlowly(launch_, connections_, i, steps_.send(i));
    }
    __syncthreads();
    const bool aborted = *static_cast<volatile bool*>(&connections_.aborted);
    __syncthreads();  // a wait of a later step may abort
    return !aborted;
  }

  // Says to the proxies of peers on other hosts which step follows.
  __device__ __forceinline__ void announce(const Move& move, uint32_t bytes) {
    if (launch_.slots.headerBytes == 0 || threadIdx.x != 0) return;
    for (uint32_t i = move.to; i < move.to + move.sendCount; i++) {
      uint64_t* const posts = connections_.sends[i].posts;
      const uint32_t step = steps_.send(i);
      if (posts != nullptr) storeVolatile(posts + step % kMaxNetSteps, netPost(step, true, bytes));
    }
  }

  // Counts the step and grants credit where it is due.
  __device__ __forceinline__ void post(const Move& move, uint32_t bytes) {
    bool grantsCredit = false;
    const auto due = [&](uint32_t i) { return isCreditDue(steps_.receive(i) + 1, slots()); };
    for (uint32_t i = move.from; i < move.from + move.receiveCount; i++) grantsCredit = grantsCredit || due(i);
    if (grantsCredit) __syncthreads();  // all threads have read
    if (threadIdx.x == 0) {
      for (uint32_t i = move.from; i < move.from + move.receiveCount; i++) {
        connections_.receives[i].bytes += bytes;
        if (due(i)) storeCredit(connections_.receives[i].head, steps_.receive(i) + 1);
      }
      for (uint32_t i = move.to; i < move.to + move.sendCount; i++) connections_.sends[i].bytes += bytes;
    }
    if (!steps_.advance(move)) finish();
  }

  // Called after the last move: updates the connections' states.
  __device__ __forceinline__ void finish() { steps_.write(); }

 private:
  // Rare: not inlined, so that it takes no registers from the common path.
  static __device__ __noinline__ void awaitCreditSlowly(const Launch& launch, Connections& connections, uint32_t i,
                                                        uint32_t step) {
    SpinWait spin(launch, connections);
    awaitCredit(connections.sends[i], step, launch.slots.lineSteps, spin);
  }

  template <class T>
  __device__ __forceinline__ T* slotAt(const ConnectionState& connection, uint32_t step) const {
    return reinterpret_cast<T*>(connection.slots + (step & (slots() - 1)) * slotBytes());
  }

  const Launch& launch_;
  Connections& connections_;
  Steps steps_;
};

}  // namespace ncclrun::cuda
