// Chooses the code of a launch's kind: the only place where an algorithm's step meets a type.
#pragma once
#include <type_traits>

#include "cuda/kernels/move.cuh"

namespace ncclrun::cuda {

// Of a module for whole numbers the first type is unsigned, the second the signed one of the same size, whose sums and
// products have the same bits.
template <class First, class Second>
struct Kinds {
  static constexpr bool kReduces = true;
  using FirstType = First;
  using SecondType = Second;
  static constexpr bool kWhole = std::is_integral_v<First>;

  // action.run<T, Op>()
  template <class Action>
  static __device__ __forceinline__ void choose(uint8_t kind, Action&& action) {
    constexpr auto of = [](bool second, Fold fold) { return kindOf(second, fold); };
    switch (kind) {
      case of(false, Fold::sum):
        return action.template operator()<First, Sum>();
      case of(false, Fold::prod):
        return action.template operator()<First, Prod>();
      case of(false, Fold::max):
        return action.template operator()<First, Max>();
      case of(false, Fold::min):
        return action.template operator()<First, Min>();
      case of(false, Fold::preMulSum):
        return action.template operator()<First, PreMulSum>();
      case of(true, Fold::max):
        return action.template operator()<Second, Max>();
      case of(true, Fold::min):
        return action.template operator()<Second, Min>();
      default:
        break;
    }
    if constexpr (kWhole) {
      if (kind == of(false, Fold::average)) return action.template operator()<First, Average>();
      return action.template operator()<Second, Average>();
    } else {
      if (kind == of(true, Fold::sum)) return action.template operator()<Second, Sum>();
      if (kind == of(true, Fold::prod)) return action.template operator()<Second, Prod>();
      return action.template operator()<Second, PreMulSum>();
    }
  }
};

// Of one type: sums and pre-multiplied sums.
template <class T>
struct Sums {};

// For what only moves.
struct Bytes {
  static constexpr bool kReduces = false;
  using FirstType = uint8_t;
  using SecondType = uint8_t;
  template <class Action>
  static __device__ __forceinline__ void choose(uint8_t, Action&& action) {
    action.template operator()<uint8_t, Copy>();
  }
};

}  // namespace ncclrun::cuda
