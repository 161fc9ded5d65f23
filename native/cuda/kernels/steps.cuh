// Which step each connection of a block is at.
#pragma once
#include "cuda/kernels/ends.cuh"
#include "cuda/kernels/move.cuh"

namespace ncclrun::cuda {

// Small numbers by connection, in registers.
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

// Counted by every thread for itself, in registers, since the ends were last brought up to date: no thread waits for
// another's count.
class Steps {
 public:
  __device__ explicit Steps(Ends& ends) : ends_(ends) {}

  // Of the step under way.
  __device__ __forceinline__ uint32_t receive(uint32_t i) const { return ends_.receives[i].step + received_[i]; }
  __device__ __forceinline__ uint32_t send(uint32_t i) const { return ends_.sends[i].step + sent_[i]; }

  // The next one of all connections of the move. False: write() is due, as soon as all threads are here.
  __device__ __forceinline__ bool advance(const Move& move) {
    bool fits = true;
    for (uint32_t i = move.from; i < move.from + move.froms; i++) {
      received_.increment(i);
      fits = fits && received_[i] < kMost;
    }
    for (uint32_t i = move.to; i < move.to + move.tos; i++) {
      sent_.increment(i);
      fits = fits && sent_[i] < kMost;
    }
    return fits;
  }

  // Brings the ends up to date. By all threads of the block together.
  __device__ __forceinline__ void write() {
    __syncthreads();
    if (threadIdx.x < kMaxPeers) {
      ends_.receives[threadIdx.x].step += received_[threadIdx.x];
      ends_.sends[threadIdx.x].step += sent_[threadIdx.x];
    }
    received_.clear();
    sent_.clear();
    __syncthreads();
  }

 private:
  static constexpr uint32_t kMost = 200;
  Ends& ends_;
  Counts received_, sent_;
};

}  // namespace ncclrun::cuda
