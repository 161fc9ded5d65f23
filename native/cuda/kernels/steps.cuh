// Counts the steps of each connection of a block.
#pragma once
#include "cuda/kernels/connections.cuh"
#include "cuda/kernels/move.cuh"

namespace ncclrun::cuda {

// Small counters, one per connection, in registers.
class Counts {
 public:
  __device__ __forceinline__ uint32_t operator[](uint32_t i) const {
    return uint32_t((i < 8 ? low_ : high_) >> (i % 8 * 8)) & 0xff;
  }
  __device__ __forceinline__ void increment(uint32_t i) { (i < 8 ? low_ : high_) += 1ull << (i % 8 * 8); }
  __device__ __forceinline__ void clear() { low_ = high_ = 0; }

 private:
  uint64_t low_ = 0, high_ = 0;
};

// Steps since the connections' states were last updated. Every thread counts for itself in registers, so that no thread
// waits for another's count.
class Steps {
 public:
  __device__ explicit Steps(Connections& connections) : connections_(connections) {}

  // Number of the current step.
  __device__ __forceinline__ uint32_t receive(uint32_t i) const { return connections_.receives[i].step + received_[i]; }
  __device__ __forceinline__ uint32_t send(uint32_t i) const { return connections_.sends[i].step + sent_[i]; }

  // Advances all connections of the move. Returns false if write() is due as soon as all threads are here.
  __device__ __forceinline__ bool advance(const Move& move) {
    bool fits = true;
    for (uint32_t i = move.from; i < move.from + move.receiveCount; i++) {
      received_.increment(i);
      fits = fits && received_[i] < kMax;
    }
    for (uint32_t i = move.to; i < move.to + move.sendCount; i++) {
      sent_.increment(i);
      fits = fits && sent_[i] < kMax;
    }
    return fits;
  }

  // Updates the connections' states. Called by all threads of the block together.
  __device__ __forceinline__ void write() {
    __syncthreads();
    if (threadIdx.x < kMaxPeers) {
      connections_.receives[threadIdx.x].step += received_[threadIdx.x];
      connections_.sends[threadIdx.x].step += sent_[threadIdx.x];
    }
    received_.clear();
    sent_.clear();
    __syncthreads();
  }

 private:
  static constexpr uint32_t kMax = 200;
  Connections& connections_;
  Counts received_, sent_;
};

}  // namespace ncclrun::cuda
