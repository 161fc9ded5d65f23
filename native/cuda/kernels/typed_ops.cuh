// Chooses the code for a launch's type and operator (opIndex): only here an algorithm's step is bound to a type.
#pragma once
#include <type_traits>

#include "cuda/kernels/move.cuh"

namespace ncclrun::cuda {

// The types and operators of one module. In a module for integers the first type is unsigned and the second is the
// signed type of the same size, whose sums and products have the same bits.
template <class First, class Second>
struct TypedOps {
  static constexpr bool kReduces = true;
  using FirstType = First;
  using SecondType = Second;
  static constexpr bool kWhole = std::is_integral_v<First>;

  // action.run<T, Op>()
  template <class Action>
  static __device__ __forceinline__ void choose(uint8_t opIndex, Action&& action) {
    constexpr auto of = [](bool second, RedOp op) { return opIndexOf(second, op); };
    switch (opIndex) {
      case of(false, RedOp::sum):
        return action.template operator()<First, Sum>();
      case of(false, RedOp::prod):
        return action.template operator()<First, Prod>();
      case of(false, RedOp::max):
        return action.template operator()<First, Max>();
      case of(false, RedOp::min):
        return action.template operator()<First, Min>();
      case of(false, RedOp::preMulSum):
        return action.template operator()<First, PreMulSum>();
      case of(true, RedOp::max):
        return action.template operator()<Second, Max>();
      case of(true, RedOp::min):
        return action.template operator()<Second, Min>();
      default:
        break;
    }
    if constexpr (kWhole) {
      if (opIndex == of(false, RedOp::average)) return action.template operator()<First, Average>();
      return action.template operator()<Second, Average>();
    } else {
      if (opIndex == of(true, RedOp::sum)) return action.template operator()<Second, Sum>();
      if (opIndex == of(true, RedOp::prod)) return action.template operator()<Second, Prod>();
      return action.template operator()<Second, PreMulSum>();
    }
  }
};

// Sums and pre-multiplied sums of one type.
template <class T>
struct Sums {};

// For operations that only move data.
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
