// Folding of words of 8 bytes under protocols LL and LL128: of a module's two types by an operator chosen when the
// kernel runs, which is less code than a kernel each, and of one type by sums, whose time counts most.
#pragma once
#include "device/cuda/arithmetic.cuh"
#include "device/cuda/kinds.cuh"
#include "device/cuda/launch_format.h"

namespace ncclrun::cuda {

// Of one type, from left to right as Folding (arithmetic.cuh).
template <class T>
class AnyFolding {
 public:
  using Word = Pack<T, 8>;
  using Value = typename Wide<T>::Type;

  __device__ __forceinline__ void take(const Word& word, bool scaled, bool isFirst, Fold fold, Value scalar) {
#pragma unroll
    for (uint32_t e = 0; e < Word::kCount; e++) {
      Value value = Wide<T>::widen(word.elements[e]);
      if (scaled) value = Wide<T>::widen(Wide<T>::narrow(times(value, scalar)));
      sums_[e] = isFirst ? value : apply(sums_[e], value, fold);
    }
  }
  __device__ __forceinline__ Word result(uint32_t divisor) const {
    Word out;
#pragma unroll
    for (uint32_t e = 0; e < Word::kCount; e++) {
      out.elements[e] = Wide<T>::narrow(sums_[e]);
      if constexpr (std::is_integral_v<T>) {
        using Long = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
        if (divisor > 1) out.elements[e] = T(Long(out.elements[e]) / Long(divisor));
      }
    }
    return out;
  }

 private:
  static __device__ __forceinline__ Value apply(Value a, Value b, Fold fold) {
    switch (fold) {
      case Fold::prod:
        return Prod::apply(a, b);
      case Fold::max:
        return Max::apply(a, b);
      case Fold::min:
        return Min::apply(a, b);
      default:
        return Sum::apply(a, b);
    }
  }
  Value sums_[Word::kCount];
};

__device__ __forceinline__ uint64_t bitsOf(const auto& word) { return *reinterpret_cast<const uint64_t*>(&word); }
template <class Word>
__device__ __forceinline__ Word wordOf(uint64_t bits) {
  return *reinterpret_cast<const Word*>(&bits);
}
template <class T>
__device__ __forceinline__ typename Wide<T>::Type scalarOf(const Launch& launch) {
  return launch.scalarAt != nullptr ? Wide<T>::widen(*static_cast<const T*>(launch.scalarAt))
                                    : *reinterpret_cast<const typename Wide<T>::Type*>(&launch.scalar);
}
// A contribution of our own is multiplied before anything.
__device__ __forceinline__ bool isScaling(const Launch& launch) {
  return launch.kind % kFolds == uint8_t(Fold::preMulSum);
}

// What one launch folds by: nothing, in a module that only moves.
template <class AllKinds>
class WordFold {
 public:
  static constexpr bool kFolds = false;
  __device__ explicit WordFold(const Launch&) {}
  __device__ bool scales() const { return false; }
};

// By the operator of the launch.
template <class First, class Second>
class WordFold<Kinds<First, Second>> {
 public:
  static constexpr bool kFolds = true;
  __device__ explicit WordFold(const Launch& launch)
      : second_(launch.kind >= cuda::kFolds), fold_(Fold(launch.kind % cuda::kFolds)), divisor_(launch.divisor) {
    if (fold_ != Fold::preMulSum) return;
    if (second_) secondScalar_ = scalarOf<Second>(launch);
    if (!second_) firstScalar_ = scalarOf<First>(launch);
  }
  __device__ bool scales() const { return fold_ == Fold::preMulSum; }

  class Folding {
   public:
    __device__ __forceinline__ void take(const WordFold& by, uint64_t word, bool isOwn, bool isFirst) {
      const bool scaled = isOwn && by.scales();
      if (by.second_) {
        second_.take(wordOf<Pack<Second, 8>>(word), scaled, isFirst, by.fold_, by.secondScalar_);
      } else {
        first_.take(wordOf<Pack<First, 8>>(word), scaled, isFirst, by.fold_, by.firstScalar_);
      }
    }
    // divides: it goes into a user's buffer.
    __device__ __forceinline__ uint64_t result(const WordFold& by, bool divides) const {
      const uint32_t divisor = divides ? by.divisor_ : 1;
      return by.second_ ? bitsOf(second_.result(divisor)) : bitsOf(first_.result(divisor));
    }

   private:
    AnyFolding<First> first_;
    AnyFolding<Second> second_;
  };

 private:
  const bool second_;
  const Fold fold_;
  const uint32_t divisor_;
  typename Wide<First>::Type firstScalar_{};
  typename Wide<Second>::Type secondScalar_{};
};

// Sums and pre-multiplied sums of one type.
template <class T>
class WordFold<Sums<T>> {
 public:
  static constexpr bool kFolds = true;
  __device__ explicit WordFold(const Launch& launch) : scales_(isScaling(launch)) {
    if (scales_) scalar_ = scalarOf<T>(launch);
  }
  __device__ bool scales() const { return scales_; }

  class Folding {
   public:
    __device__ __forceinline__ void take(const WordFold& by, uint64_t word, bool isOwn, bool isFirst) {
      folding_.take(wordOf<Pack<T, 8>>(word), isOwn && by.scales_, isFirst, Fold::sum, by.scalar_);
    }
    __device__ __forceinline__ uint64_t result(const WordFold&, bool) const { return bitsOf(folding_.result(1)); }

   private:
    AnyFolding<T> folding_;
  };

 private:
  const bool scales_;
  typename Wide<T>::Type scalar_{};
};

}  // namespace ncclrun::cuda
