// What protocols LL and LL128 have in common: the data carries flags, so that it says itself when it is there. No
// barrier stands between a sender's load and the receiver's: each thread (LL) or warp (LL128) waits for its own lines
// alone. The flag is the step's number: what an earlier step has left is no message.
#pragma once
#include "device/cuda/steps.cuh"

namespace ncclrun::cuda {

// The step that each connection is at, and credit. All threads of a block call each of these together.
template <uint32_t kStepBytes>
class LineSteps {
 public:
  __device__ LineSteps(const Launch& launch, Ends& ends) : launch_(launch), ends_(ends), steps_(ends) {}

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
  // A sender fills whole slots once in a while: so no flag is ever as old as the counter's period.
  __device__ __forceinline__ bool isRenewal(uint32_t i) const { return steps_.send(i) % kRenewal < kLineSteps; }

  // Waits until all sends [to, +tos) have a free slot. All threads agree on whether there is one.
  __device__ __forceinline__ void awaitCredits(const Move& move) {
    bool all = true;
    for (uint32_t i = move.to; i < move.to + move.tos; i++)
      all = all && reached(ends_.sends[i].freed + kLineSteps, steps_.send(i) + 1);
    if (all) return;
    __syncthreads();
    if (threadIdx.x == 0) {
      Patience patience(launch_, ends_);
      for (uint32_t i = move.to; i < move.to + move.tos; i++) {
        awaitCredit(ends_.sends[i], steps_.send(i), kLineSteps, patience);
      }
    }
    __syncthreads();
  }

  // Counts the step; tells senders of every second half of the slots at once.
  __device__ __forceinline__ void handOn(const Move& move, uint32_t bytes) {
    bool tells = false;
    const auto due = [&](uint32_t i) { return (steps_.receive(i) + 1) % (kLineSteps / 2) == 0; };
    for (uint32_t i = move.from; i < move.from + move.froms; i++) tells = tells || due(i);
    if (tells) __syncthreads();  // all have read
    if (threadIdx.x == 0) {
      for (uint32_t i = move.from; i < move.from + move.froms; i++) {
        ends_.receives[i].bytes += bytes;
        if (due(i)) storeRelease(ends_.receives[i].head, steps_.receive(i) + 1);
      }
      for (uint32_t i = move.to; i < move.to + move.tos; i++) ends_.sends[i].bytes += bytes;
    }
    if (!steps_.advance(move)) finish();
  }

  // After the last move: the steps are in the ends again.
  __device__ __forceinline__ void finish() { steps_.write(); }

 private:
  static constexpr uint32_t kRenewal = 1u << 30;

  template <class T>
  static __device__ __forceinline__ T* slotAt(const End& end, uint32_t step) {
    return reinterpret_cast<T*>(end.slots + step % kLineSteps * kStepBytes);
  }

  const Launch& launch_;
  Ends& ends_;
  Steps steps_;
};

}  // namespace ncclrun::cuda
