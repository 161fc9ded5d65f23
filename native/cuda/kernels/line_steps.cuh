// What protocols LL and LL128 have in common: the data carries flags, so that it says itself when it is there. No
// barrier stands between a sender's load and the receiver's: each thread (LL) or warp (LL128) waits for its own lines
// alone. The flag is the step's number: what an earlier step has left is no message.
#pragma once
#include "cuda/kernels/steps.cuh"

namespace ncclrun::cuda {

// Whether a receiver that is done with so many steps tells the sender: of every half of the slots at once.
__device__ __forceinline__ bool isCreditDue(uint32_t done, uint32_t slots) { return (done & (slots / 2 - 1)) == 0; }

template <uint32_t kProtocol>
__device__ __forceinline__ uint32_t lineSlotBytes(const Launch& launch) {
  return kProtocol == 1 ? launch.slots.line64StepBytes : launch.slots.line128StepBytes;
}
// A sender fills whole slots once in a while: so no flag is ever as old as the counter's period.
__device__ __forceinline__ bool isRenewed(uint32_t step, uint32_t slots) { return step % (1u << 30) < slots; }

// The step that each connection is at, and credit. All threads of a block call each of these together.
template <uint32_t kProtocol>
class LineSteps {
 public:
  using Ends = cuda::Ends;
  static constexpr bool kOneTurn = false;

  __device__ LineSteps(const Launch& launch, Ends& ends) : launch_(launch), ends_(ends), steps_(ends) {}

  __device__ __forceinline__ uint32_t slots() const { return launch_.slots.lineSteps; }
  __device__ __forceinline__ uint32_t slotBytes() const { return lineSlotBytes<kProtocol>(launch_); }

  // Of the step under way.
  __device__ __forceinline__ uint32_t receiveFlag(uint32_t i) const { return steps_.receive(i) + 1; }
  __device__ __forceinline__ uint32_t sendFlag(uint32_t i) const { return steps_.send(i) + 1; }
  template <class T>
  __device__ __forceinline__ T* receiveSlot(uint32_t i) const {
    return slotAt<T>(ends_.receives[i], steps_.receive(i));
  }
  template <class T>
  __device__ __forceinline__ T* sendSlot(uint32_t i) const {
    return slotAt<T>(ends_.sends[i], steps_.send(i));
  }
  __device__ __forceinline__ bool isRenewal(uint32_t i) const { return isRenewed(steps_.send(i), slots()); }

  // Waits until all sends [to, +tos) have a free slot. All threads agree on whether there is one.
  __device__ __forceinline__ void awaitCredits(const Move& move) {
    bool all = true;
    for (uint32_t i = move.to; i < move.to + move.tos; i++)
      all = all && reached(ends_.sends[i].freed + slots(), steps_.send(i) + 1);
    if (all) return;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (uint32_t i = move.to; i < move.to + move.tos; i++) awaitApart(launch_, ends_, i, steps_.send(i));
    }
    __syncthreads();
  }

  // Counts the step; tells senders that it is due.
  __device__ __forceinline__ void handOn(const Move& move, uint32_t bytes) {
    bool tells = false;
    const auto due = [&](uint32_t i) { return isCreditDue(steps_.receive(i) + 1, slots()); };
    for (uint32_t i = move.from; i < move.from + move.froms; i++) tells = tells || due(i);
    if (tells) __syncthreads();  // all have read
    if (threadIdx.x == 0) {
      for (uint32_t i = move.from; i < move.from + move.froms; i++) {
        ends_.receives[i].bytes += bytes;
        if (due(i)) storeCredit(ends_.receives[i].head, steps_.receive(i) + 1);
      }
      for (uint32_t i = move.to; i < move.to + move.tos; i++) ends_.sends[i].bytes += bytes;
    }
    if (!steps_.advance(move)) finish();
  }

  // After the last move: the steps are in the ends again.
  __device__ __forceinline__ void finish() { steps_.write(); }

 private:
  // Seldom needed: its registers should not be taken from what is always done.
  static __device__ __noinline__ void awaitApart(const Launch& launch, Ends& ends, uint32_t i, uint32_t step) {
    Patience patience(launch, ends);
    awaitCredit(ends.sends[i], step, launch.slots.lineSteps, patience);
  }

  template <class T>
  __device__ __forceinline__ T* slotAt(const End& end, uint32_t step) const {
    return reinterpret_cast<T*>(end.slots + (step & (slots() - 1)) * slotBytes());
  }

  const Launch& launch_;
  Ends& ends_;
  Steps steps_;
};

}  // namespace ncclrun::cuda
