// One step of an algorithm, as the protocols execute it.
#pragma once
#include "cuda/kernels/arithmetic.cuh"
#include "plan/launch_format.h"

namespace ncclrun::cuda {

// Reduces the slots of receives [from, +receiveCount), with `own` (if not null) as number `ownIndex` of them, into the
// slots of sends [to, +sendCount) and `target` (if not null).
struct Move {
  uint32_t from, receiveCount, to, sendCount;
  const void* own;
  uint32_t ownIndex;
  void* target;
  size_t count;  // elements
};

// The contributions of a move: those that it receives, and this rank's own in between. All ranks run the same
// instruction on the same contributions: only then they get the same bits, also for NaNs.
class Contributions {
 public:
  __device__ __forceinline__ explicit Contributions(const Move& move)
      : from_(move.from),
        own_(move.own == nullptr                 ? ~0u
             : move.ownIndex < move.receiveCount ? move.ownIndex
                                                 : move.receiveCount),
        count_(move.receiveCount + (move.own != nullptr ? 1 : 0)) {}
  __device__ __forceinline__ uint32_t count() const { return count_; }
  __device__ __forceinline__ bool has(uint32_t number) const { return number < count_; }
  __device__ __forceinline__ bool isOwn(uint32_t number) const { return number == own_; }
  __device__ __forceinline__ bool isReceived(uint32_t number) const { return has(number) && !isOwn(number); }
  __device__ __forceinline__ uint32_t connection(uint32_t number) const {
    return from_ + number - (number > own_ ? 1 : 0);
  }

 private:
  const uint32_t from_, own_, count_;
};
// True if the move stores the final result, which is divided, into a user's buffer.
__device__ __forceinline__ bool isResult(const Move& move) {
  return move.own != nullptr && move.receiveCount > 0 && move.target != nullptr;
}
// True if the move has anything to reduce by `reduction` (WordReduction).
__device__ __forceinline__ bool isReduced(const Move& move, const auto& reduction) {
  const bool own = move.own != nullptr;
  return move.receiveCount + own > 1 || (own && reduction.scales());
}

template <class T, class Op>
__device__ __forceinline__ Adjustment<T> adjustmentOf(const Launch& launch) {
  using Scalar = typename Wide<T>::Type;
  Adjustment<T> adjust;
  if constexpr (Op::kDivides) adjust.divisor = launch.divisor;
  if constexpr (Op::kScales) {
    adjust.scalar = launch.scalarAt != nullptr ? Wide<T>::widen(*static_cast<const T*>(launch.scalarAt))
                                               : *reinterpret_cast<const Scalar*>(&launch.scalar);
  }
  return adjust;
}

template <class T, class Op>
__device__ __forceinline__ Adjustment<T> adjustmentFor(const Launch& launch, const Move& move) {
  Adjustment<T> adjust = adjustmentOf<T, Op>(launch);
  if (!isResult(move)) adjust.divisor = 1;
  return adjust;
}

}  // namespace ncclrun::cuda
