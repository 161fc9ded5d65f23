// Folding of words whose operator is chosen when the kernel runs: less code than a kernel each, for protocols whose
// time is not arithmetic's.
#pragma once
#include "device/cuda/arithmetic.cuh"
#include "device/cuda/launch_format.h"

namespace ncclrun::cuda {

// Of one type. As Folding (arithmetic.cuh), for words of 8 bytes.
template <class T>
class AnyFolding {
 public:
  using Word = Pack<T, 8>;
  using Value = typename Wide<T>::Type;

  __device__ __forceinline__ void take(const Word& word, bool scaled, bool isFirst, Fold fold, Value scalar) {
    if (isFirst) first_ = word;
    alone_ = isFirst && !scaled;
#pragma unroll
    for (uint32_t e = 0; e < Word::kCount; e++) {
      Value value = Wide<T>::widen(word.elements[e]);
      if (scaled) value = Wide<T>::widen(Wide<T>::narrow(value * scalar));
      sums_[e] = isFirst ? value : apply(sums_[e], value, fold);
    }
  }
  __device__ __forceinline__ Word result(uint32_t divisor) const {
    Word out = first_;
    if (alone_) return out;
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
  Word first_;
  bool alone_ = true;
};

__device__ __forceinline__ uint64_t bitsOf(const auto& word) { return *reinterpret_cast<const uint64_t*>(&word); }
template <class Word>
__device__ __forceinline__ Word wordOf(uint64_t bits) {
  return *reinterpret_cast<const Word*>(&bits);
}

// What one launch folds by.
template <class AllKinds>
class WordFold {
 public:
  __device__ explicit WordFold(const Launch& launch)
      : second_(launch.kind >= kFolds), fold_(Fold(launch.kind % kFolds)), divisor_(launch.divisor) {
    if constexpr (AllKinds::kReduces) {
      if (fold_ != Fold::preMulSum) return;
      scalar_.load(launch);
      otherScalar_.load(launch);
    }
  }

  // A contribution of our own is multiplied before anything.
  __device__ bool scales(bool own) const { return AllKinds::kReduces && own && fold_ == Fold::preMulSum; }

  class Folding {
   public:
    __device__ __forceinline__ void take(const WordFold& by, uint64_t word, bool isOwn, bool isFirst) {
      if constexpr (AllKinds::kReduces) {
        const bool scaled = isOwn && by.fold_ == Fold::preMulSum;
        if (by.second_) {
          second_.take(wordOf<Pack<Second, 8>>(word), scaled, isFirst, by.fold_, by.otherScalar_.value);
        } else {
          first_.take(wordOf<Pack<First, 8>>(word), scaled, isFirst, by.fold_, by.scalar_.value);
        }
      } else {
        only_ = word;
      }
    }
    // divides: it goes into a user's buffer.
    __device__ __forceinline__ uint64_t result(const WordFold& by, bool divides) const {
      if constexpr (AllKinds::kReduces) {
        const uint32_t divisor = divides ? by.divisor_ : 1;
        return by.second_ ? bitsOf(second_.result(divisor)) : bitsOf(first_.result(divisor));
      } else {
        return only_;
      }
    }

   private:
    using First = typename AllKinds::FirstType;
    using Second = typename AllKinds::SecondType;
    AnyFolding<First> first_;
    AnyFolding<Second> second_;
    uint64_t only_ = 0;
  };

 private:
  template <class T>
  struct Scalar {
    typename Wide<T>::Type value{};
    __device__ void load(const Launch& launch) {
      value = launch.scalarAt != nullptr ? Wide<T>::widen(*static_cast<const T*>(launch.scalarAt))
                                         : *reinterpret_cast<const typename Wide<T>::Type*>(&launch.scalar);
    }
  };
  const bool second_;
  const Fold fold_;
  const uint32_t divisor_;
  Scalar<typename AllKinds::FirstType> scalar_;
  Scalar<typename AllKinds::SecondType> otherScalar_;
};

}  // namespace ncclrun::cuda
