// Arithmetic of the GPU on a thread's few elements. The twin of device/host/fold.h, with the same rules: from left to
// right, integers wrap around, 8- and 16-bit floats are folded in float and rounded once.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>
#include <type_traits>

namespace ncclrun::cuda {

// What an element is folded in.
template <class T>
struct Wide {
  using Type = T;
  static __device__ __forceinline__ T widen(T value) { return value; }
  static __device__ __forceinline__ T narrow(T value) { return value; }
};
// Those kept in fewer bits.
template <class T>
struct WideInFloat {
  using Type = float;
  static __device__ __forceinline__ float widen(T value) { return float(value); }
  static __device__ __forceinline__ T narrow(float value) { return T(value); }
};
template <>
struct Wide<__half> : WideInFloat<__half> {};
template <>
struct Wide<__nv_bfloat16> : WideInFloat<__nv_bfloat16> {};
// What is too large for 8 bits becomes the largest finite value.
template <>
struct Wide<__nv_fp8_e4m3> : WideInFloat<__nv_fp8_e4m3> {};
template <>
struct Wide<__nv_fp8_e5m2> : WideInFloat<__nv_fp8_e5m2> {
  static __device__ __forceinline__ __nv_fp8_e5m2 narrow(float value) {
    __nv_fp8_e5m2 out(value);  // the largest finite value for what is too large
    if (isinf(value)) out.__x = value > 0 ? 0x7c : 0xfc;
    return out;
  }
};

// a × b, rounded: never made one with an addition that follows, which ranks whose order of folding differs would round
// differently.
template <class V>
__device__ __forceinline__ V times(V a, V b) {
  if constexpr (std::is_same_v<V, float>) return __fmul_rn(a, b);
  if constexpr (std::is_same_v<V, double>) return __dmul_rn(a, b);
  if constexpr (std::is_integral_v<V>) return a * b;
}

// What an operator does beside folding.
struct Plain {
  static constexpr bool kScales = false;   // multiplies a rank's contribution first
  static constexpr bool kDivides = false;  // divides the result
  static constexpr bool kFolds = true;
};
// For what only moves.
struct Copy : Plain {
  static constexpr bool kFolds = false;
  template <class V>
  static __device__ __forceinline__ V apply(V a, V) {
    return a;
  }
};
template <class T>
struct Adjustment {
  typename Wide<T>::Type scalar{};
  uint32_t divisor = 1;
};

struct Sum : Plain {
  template <class V>
  static __device__ __forceinline__ V apply(V a, V b) {
    return a + b;
  }
};
struct Prod : Plain {
  template <class V>
  static __device__ __forceinline__ V apply(V a, V b) {
    return a * b;
  }
};
struct PreMulSum : Sum {
  static constexpr bool kScales = true;
};
// Of whole numbers.
struct Average : Sum {
  static constexpr bool kDivides = true;
};
struct Max : Plain {
  template <class V>
  static __device__ __forceinline__ V apply(V a, V b) {
    if constexpr (std::is_floating_point_v<V>) {
      if (a == b) return signbit(a) ? b : a;
      if (b != b) return a;
    }
    return a > b ? a : b;
  }
};
struct Min : Plain {
  template <class V>
  static __device__ __forceinline__ V apply(V a, V b) {
    if constexpr (std::is_floating_point_v<V>) {
      if (a == b) return signbit(a) ? a : b;
      if (b != b) return a;
    }
    return a < b ? a : b;
  }
};

// As many elements as one access to memory moves.
template <class T, uint32_t kBytes>
struct alignas(kBytes) Pack {
  static constexpr uint32_t kCount = kBytes / sizeof(T);
  T elements[kCount];
};

// Folds packs in the order in which they are added. What is added alone comes out as it is, bit by bit.
template <class T, class Op, uint32_t kBytes>
class Folding {
 public:
  using Packed = Pack<T, kBytes>;
  __device__ __forceinline__ explicit Folding(const Adjustment<T>& adjust) : adjust_(adjust) {}

  // The first.
  __device__ __forceinline__ void begin(const Packed& pack, bool scaled) {
    first_ = pack;
    if constexpr (Op::kFolds) {
      alone_ = !(Op::kScales && scaled);
#pragma unroll
      for (uint32_t e = 0; e < Packed::kCount; e++) sums_[e] = valueOf(pack.elements[e], scaled);
    }
  }
  __device__ __forceinline__ void add(const Packed& pack, bool scaled) {
    if constexpr (Op::kFolds) {
      alone_ = false;
#pragma unroll
      for (uint32_t e = 0; e < Packed::kCount; e++) sums_[e] = Op::apply(sums_[e], valueOf(pack.elements[e], scaled));
    }
  }
  __device__ __forceinline__ Packed result() const {
    Packed out = first_;
    if constexpr (Op::kFolds) {
      if (alone_) return out;
#pragma unroll
      for (uint32_t e = 0; e < Packed::kCount; e++) out.elements[e] = quotient(Wide<T>::narrow(sums_[e]));
    }
    return out;
  }

 private:
  __device__ __forceinline__ typename Wide<T>::Type valueOf(T element, bool scaled) const {
    const auto value = Wide<T>::widen(element);
    if constexpr (Op::kScales) {
      if (scaled) return Wide<T>::widen(Wide<T>::narrow(times(value, adjust_.scalar)));
    }
    return value;
  }

  __device__ __forceinline__ T quotient(T sum) const {
    if constexpr (Op::kDivides) {
      using Long = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
      if (adjust_.divisor > 1) return T(Long(sum) / Long(adjust_.divisor));
    }
    return sum;
  }

  const Adjustment<T>& adjust_;
  typename Wide<T>::Type sums_[Packed::kCount];
  Packed first_;
  bool alone_ = true;
};

// Which source of a fold is multiplied: the number of one, or
inline constexpr uint32_t kNoSource = ~0u, kAllSources = ~0u - 1;

// What the packs of `count` sources become. load(s): that of source s.
template <class T, class Op, uint32_t kBytes>
__device__ __forceinline__ Pack<T, kBytes> foldPacks(uint32_t count, const Adjustment<T>& adjust, uint32_t scaled,
                                                     auto&& load) {
  const auto isScaled = [&](uint32_t s) { return scaled == s || scaled == kAllSources; };
  Folding<T, Op, kBytes> folding(adjust);
  folding.begin(load(0), isScaled(0));
#pragma unroll
  for (uint32_t s = 1; s < count; s++) folding.add(load(s), isScaled(s));
  return folding.result();
}

}  // namespace ncclrun::cuda
