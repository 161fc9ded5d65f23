// Reduction of words of 8 bytes under protocols LL and LL128: for a module's two types the kernel chooses type and
// operator at run time, which is less code than a kernel each; sums of one type, which are latency-critical, are
// compiled alone.
//
// The kernel chooses the type and the operator once per word, outside of the loop over its elements: this code stands
// in every kernel, unrolled over words and contributions, and its length decides how long a module takes to compile.
#pragma once
#include "cuda/kernels/arithmetic.cuh"
#include "cuda/kernels/packed_bytes.cuh"
#include "cuda/kernels/typed_ops.cuh"
#include "plan/launch_format.h"

namespace ncclrun::cuda {

template <class T>
inline constexpr uint32_t kInWord = 8 / sizeof(T);

__device__ __forceinline__ uint64_t bitsOf(const auto& word) { return *reinterpret_cast<const uint64_t*>(&word); }
template <class Word>
__device__ __forceinline__ Word wordOf(uint64_t bits) {
  return *reinterpret_cast<const Word*>(&bits);
}

template <class T>
__device__ __forceinline__ void widenWord(const uint64_t& word, WideOf<T>* values) {
  widenPack(reinterpret_cast<const Pack<T, 8>&>(word), values);
}
template <class T>
__device__ __forceinline__ uint64_t narrowWord(const WideOf<T>* values) {
  uint64_t word = 0;
  narrowPack(values, reinterpret_cast<Pack<T, 8>&>(word));
  return word;
}
template <class T>
__device__ __forceinline__ uint64_t scaleWord(uint64_t word, WideOf<T> scalar) {
  auto& pack = reinterpret_cast<Pack<T, 8>&>(word);
  scalePack(pack, scalar, pack);
  return word;
}

// Applies Op to all elements of two words whose type is reduced without widening.
template <class T, class Op>
__device__ __forceinline__ uint64_t applyToWord(uint64_t a, uint64_t b) {
  if constexpr (sizeof(T) == 1) return applyToBytes<T, Op>(a, b);
  auto left = wordOf<Pack<T, 8>>(a);
  const auto right = wordOf<Pack<T, 8>>(b);
#pragma unroll
  for (uint32_t e = 0; e < kInWord<T>; e++) left.elements[e] = Op::apply(left.elements[e], right.elements[e]);
  return bitsOf(left);
}

// Not inlined: long code for an operator that is seldom used.
template <class T>
__device__ __noinline__ uint64_t divideWord(uint64_t word, uint32_t divisor) {
  auto pack = wordOf<Pack<T, 8>>(word);
#pragma unroll
  for (uint32_t e = 0; e < kInWord<T>; e++) pack.elements[e] = quotientOf(pack.elements[e], divisor);
  return bitsOf(pack);
}
template <class T>
__device__ __forceinline__ WideOf<T> scalarOf(const Launch& launch) {
  return launch.scalarAt != nullptr ? Wide<T>::widen(*static_cast<const T*>(launch.scalarAt))
                                    : *reinterpret_cast<const WideOf<T>*>(&launch.scalar);
}
// The reduction of a launch: none in a module that only moves data.
template <class Ops>
class WordReduction {
 public:
  static constexpr bool kReduces = false;
  __device__ explicit WordReduction(const Launch&) {}
  __device__ bool scales() const { return false; }
};

// Reduces by the operator of the launch.
template <class First, class Second>
class WordReduction<TypedOps<First, Second>> {
  static constexpr bool kWhole = std::is_integral_v<First>;
  static constexpr bool kAsKept = kIsWide<First>;

 public:
  static constexpr bool kReduces = true;
  static constexpr bool kChooses = true;  // the operator at run time
  __device__ explicit WordReduction(const Launch& launch)
      : second_(launch.opIndex >= kRedOps), op_(RedOp(launch.opIndex % kRedOps)), divisor_(launch.divisor) {
    if (op_ != RedOp::preMulSum) return;
    if (second_) secondScalar_ = scalarOf<Second>(launch);
    if (!second_) firstScalar_ = scalarOf<First>(launch);
  }
  // True if this rank's own contribution is multiplied first.
  __device__ bool scales() const { return op_ == RedOp::preMulSum; }
  __device__ __forceinline__ uint64_t scaled(uint64_t word) const {
    return scaledApart(word, second_, firstScalar_, secondScalar_);
  }

  // Accumulates contributions from left to right.
  class Accumulator {
   public:
    __device__ __forceinline__ void take(const WordReduction& by, uint64_t word, bool isFirst) {
      if constexpr (kAsKept) {
        if (isFirst) sums_ = word;
        if (!isFirst) by.choose([&]<class T, class Op>() { sums_ = applyToWord<T, Op>(sums_, word); });
      } else {
        float values[kInWord<First>];
        if (by.second_) widenWord<Second>(word, values);
        if (!by.second_) widenWord<First>(word, values);
        if (isFirst) {
#pragma unroll
          for (uint32_t e = 0; e < kInWord<First>; e++) sums_[e] = values[e];
        } else {
          by.choose([&]<class, class Op>() {
#pragma unroll
            for (uint32_t e = 0; e < kInWord<First>; e++) sums_[e] = Op::apply(sums_[e], values[e]);
          });
        }
      }
    }
    // divides: the result goes into a user's buffer.
    __device__ __forceinline__ uint64_t result(const WordReduction& by, bool divides) const {
      if constexpr (!kAsKept) {
        return by.second_ ? narrowWord<Second>(sums_) : narrowWord<First>(sums_);
      } else if constexpr (kWhole) {
        if (!divides || by.divisor_ <= 1) return sums_;
        return by.second_ ? divideWord<Second>(sums_, by.divisor_) : divideWord<First>(sums_, by.divisor_);
      } else {
        return sums_;
      }
    }

   private:
    // A word if the type is not widened, else floats of either type.
    std::conditional_t<kAsKept, uint64_t, float[kInWord<First>]> sums_;
  };

 private:
  // action.operator()<T, Op>()
  __device__ __forceinline__ void choose(auto&& action) const {
    switch (op_) {
      case RedOp::prod:
        return ofType<Prod>(action);
      case RedOp::max:
        return ofType<Max>(action);
      case RedOp::min:
        return ofType<Min>(action);
      default:
        return ofType<Sum>(action);
    }
  }
  template <class Op>
  __device__ __forceinline__ void ofType(auto&& action) const {
    constexpr bool kOrders = std::is_same_v<Op, Max> || std::is_same_v<Op, Min>;
    // Signed and unsigned sums and products have the same bits; floats of both types are reduced alike.
    if constexpr (!kAsKept || (kWhole && !kOrders)) return action.template operator()<First, Op>();
    if (second_) action.template operator()<Second, Op>();
    if (!second_) action.template operator()<First, Op>();
  }
  // Not inlined: long code for an operator that is seldom used. By value: what has an address is not in registers.
  static __device__ __noinline__ uint64_t scaledApart(uint64_t word, bool second, WideOf<First> firstScalar,
                                                      WideOf<Second> secondScalar) {
    return second ? scaleWord<Second>(word, secondScalar) : scaleWord<First>(word, firstScalar);
  }

  const bool second_;
  const RedOp op_;
  const uint32_t divisor_;
  WideOf<First> firstScalar_{};
  WideOf<Second> secondScalar_{};
};

// Sums and pre-multiplied sums of one type.
template <class T>
class WordReduction<Sums<T>> {
 public:
  static constexpr bool kReduces = true;
  static constexpr bool kChooses = false;
  __device__ explicit WordReduction(const Launch& launch)
      : scales_(launch.opIndex % kRedOps == uint8_t(RedOp::preMulSum)) {
    if (scales_) scalar_ = scalarOf<T>(launch);
  }
  __device__ bool scales() const { return scales_; }
  __device__ __forceinline__ uint64_t scaled(uint64_t word) const { return scaleWord<T>(word, scalar_); }

  class Accumulator {
   public:
    __device__ __forceinline__ void take(const WordReduction&, uint64_t word, bool isFirst) {
      WideOf<T> values[kInWord<T>];
      widenWord<T>(word, values);
#pragma unroll
      for (uint32_t e = 0; e < kInWord<T>; e++) sums_[e] = isFirst ? values[e] : Sum::apply(sums_[e], values[e]);
    }
    __device__ __forceinline__ uint64_t result(const WordReduction&, bool) const { return narrowWord<T>(sums_); }

   private:
    WideOf<T> sums_[kInWord<T>];
  };

 private:
  const bool scales_;
  WideOf<T> scalar_{};
};

}  // namespace ncclrun::cuda
