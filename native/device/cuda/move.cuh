// One step of an algorithm, as the protocols carry it out.
#pragma once
#include "device/cuda/arithmetic.cuh"
#include "device/cuda/launch_format.h"

namespace ncclrun::cuda {

// Folds the slots of receives [from, +froms), with `own` (if not null) as number `place` of them, into the slots of
// sends [to, +tos) and `target` (if not null).
struct Move {
  uint32_t from, froms, to, tos;
  const void* own;
  uint32_t place;
  void* target;
  size_t count;  // elements
  bool empty;    // a step without payload
};

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

// What is folded into a user's buffer is the result, which is divided.
template <class T, class Op>
__device__ __forceinline__ Adjustment<T> adjustmentFor(const Launch& launch, const Move& move) {
  Adjustment<T> adjust = adjustmentOf<T, Op>(launch);
  if (move.own == nullptr || move.froms == 0 || move.target == nullptr) adjust.divisor = 1;
  return adjust;
}

}  // namespace ncclrun::cuda
