// Arithmetic of the GPU on a thread's few elements. The twin of datapath/reduce.h, with the same rules: from left to
// right, integers wrap around, 8- and 16-bit floats are reduced in float and rounded once.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>
#include <type_traits>

namespace ncclrun::cuda {

// The type in which an element is reduced.
template <class T>
struct Wide {
  using Type = T;
  static __device__ __forceinline__ T widen(T value) { return value; }
  static __device__ __forceinline__ T narrow(T value) { return value; }
};
template <class T>
using WideOf = typename Wide<T>::Type;
// For types stored in fewer bits.
template <class T>
struct WideInFloat {
  using Type = float;
  static __device__ __forceinline__ float widen(T value) { return float(value); }
  static __device__ __forceinline__ T narrow(float value) { return T(value); }
};
// Two elements, as their bits, are converted at once: by one instruction, or few.
template <>
struct Wide<__half> : WideInFloat<__half> {
  using PairBits = uint32_t;
  static __device__ __forceinline__ float2 widenPair(uint32_t bits) {
    return __half22float2(*reinterpret_cast<const __half2*>(&bits));
  }
  static __device__ __forceinline__ uint32_t narrowPair(float2 values) {
    const __half2 pair = __float22half2_rn(values);
    return *reinterpret_cast<const uint32_t*>(&pair);
  }
};
template <>
struct Wide<__nv_bfloat16> : WideInFloat<__nv_bfloat16> {
  using PairBits = uint32_t;
  static __device__ __forceinline__ float2 widenPair(uint32_t bits) {
    return {__uint_as_float(bits << 16), __uint_as_float(bits & 0xffff0000u)};
  }
  static __device__ __forceinline__ uint32_t narrowPair(float2 values) {
    const __nv_bfloat162 pair = __float22bfloat162_rn(values);
    return *reinterpret_cast<const uint32_t*>(&pair);
  }
};
// Values too large for 8 bits saturate to the largest finite value.
template <>
struct Wide<__nv_fp8_e4m3> : WideInFloat<__nv_fp8_e4m3> {
  using PairBits = uint16_t;
  static __device__ __forceinline__ float2 widenPair(uint16_t bits) {
    return __half22float2(__nv_cvt_fp8x2_to_halfraw2(bits, __NV_E4M3));
  }
  static __device__ __forceinline__ uint16_t narrowPair(float2 values) {
    return __nv_cvt_float2_to_fp8x2(values, __NV_SATFINITE, __NV_E4M3);
  }
};
template <>
struct Wide<__nv_fp8_e5m2> : WideInFloat<__nv_fp8_e5m2> {
  using PairBits = uint16_t;
  static __device__ __forceinline__ float2 widenPair(uint16_t bits) {
    return __half22float2(__nv_cvt_fp8x2_to_halfraw2(bits, __NV_E5M2));
  }
  static __device__ __forceinline__ __nv_fp8_e5m2 narrow(float value) {
    __nv_fp8_e5m2 out;
    out.__x = uint8_t(narrowPair({value, 0}));
    return out;
  }
  // An infinity stays one: it follows the largest finite value.
  static __device__ __forceinline__ uint16_t narrowPair(float2 values) {
    const uint32_t bits = __nv_cvt_float2_to_fp8x2(values, __NV_SATFINITE, __NV_E5M2);
    return uint16_t(bits + (isinf(values.x) ? 1 : 0) + (isinf(values.y) ? 0x100 : 0));
  }
};

// a × b, rounded: never fused with an addition that follows, which ranks that reduce in another order would round
// differently.
template <class V>
__device__ __forceinline__ V times(V a, V b) {
  if constexpr (std::is_same_v<V, float>) return __fmul_rn(a, b);
  if constexpr (std::is_same_v<V, double>) return __dmul_rn(a, b);
  if constexpr (std::is_integral_v<V>) return a * b;
}

// Integer quotient, rounded towards zero. The divisor, a number of ranks, has at most 31 bits but may exceed T's range.
template <class T>
__device__ __forceinline__ T quotientOf(T value, uint32_t divisor) {
  using Unsigned = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  using Signed = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
  using Divided = std::conditional_t<std::is_signed_v<T>, Signed, Unsigned>;
  return T(Divided(value) / Divided(divisor));
}

// What an operator does beside reducing.
struct Plain {
  static constexpr bool kScales = false;   // multiplies a rank's contribution first
  static constexpr bool kDivides = false;  // divides the result
  static constexpr bool kReduces = true;
};
// For operations that only move data.
struct Copy : Plain {
  static constexpr bool kReduces = false;
  template <class V>
  static __device__ __forceinline__ V apply(V a, V) {
    return a;
  }
};
template <class T>
struct Adjustment {
  WideOf<T> scalar{};
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
// The average of integers.
struct Average : Sum {
  static constexpr bool kDivides = true;
};
// Floats: a number wins over a NaN, and -0 is less than +0, as in PTX's max and min (PTX ISA, "Floating Point
// Instructions: max").
struct Max : Plain {
  template <class V>
  static __device__ __forceinline__ V apply(V a, V b) {
    if constexpr (std::is_same_v<V, float>) return fmaxf(a, b);
    if constexpr (std::is_same_v<V, double>) return fmax(a, b);
    return a > b ? a : b;
  }
};
struct Min : Plain {
  template <class V>
  static __device__ __forceinline__ V apply(V a, V b) {
    if constexpr (std::is_same_v<V, float>) return fminf(a, b);
    if constexpr (std::is_same_v<V, double>) return fmin(a, b);
    return a < b ? a : b;
  }
};

// The elements of one memory access.
template <class T, uint32_t kBytes>
struct alignas(kBytes) Pack {
  static constexpr uint32_t kCount = kBytes / sizeof(T);
  T elements[kCount];
};

template <class T>
inline constexpr bool kIsWide = std::is_same_v<WideOf<T>, T>;  // reduced in the type in which it is stored

template <class T, uint32_t kBytes>
__device__ __forceinline__ void widenPack(const Pack<T, kBytes>& pack, WideOf<T>* values) {
  if constexpr (kIsWide<T> || kBytes == sizeof(T)) {
#pragma unroll
    for (uint32_t e = 0; e < pack.kCount; e++) values[e] = Wide<T>::widen(pack.elements[e]);
  } else {
    const auto& pairs = reinterpret_cast<const Pack<typename Wide<T>::PairBits, kBytes>&>(pack);
#pragma unroll
    for (uint32_t p = 0; p < pairs.kCount; p++) {
      const float2 both = Wide<T>::widenPair(pairs.elements[p]);
      values[2 * p] = both.x;
      values[2 * p + 1] = both.y;
    }
  }
}
template <class T, uint32_t kBytes>
__device__ __forceinline__ void narrowPack(const WideOf<T>* values, Pack<T, kBytes>& out) {
  if constexpr (kIsWide<T> || kBytes == sizeof(T)) {
#pragma unroll
    for (uint32_t e = 0; e < out.kCount; e++) out.elements[e] = Wide<T>::narrow(values[e]);
  } else {
    auto& pairs = reinterpret_cast<Pack<typename Wide<T>::PairBits, kBytes>&>(out);
#pragma unroll
    for (uint32_t p = 0; p < pairs.kCount; p++)
      pairs.elements[p] = Wide<T>::narrowPair({values[2 * p], values[2 * p + 1]});
  }
}
// Each element multiplied by the scalar and rounded.
template <class T, uint32_t kBytes>
__device__ __forceinline__ void scalePack(const Pack<T, kBytes>& pack, WideOf<T> scalar, Pack<T, kBytes>& out) {
  WideOf<T> values[pack.kCount];
  widenPack(pack, values);
#pragma unroll
  for (uint32_t e = 0; e < pack.kCount; e++) values[e] = times(values[e], scalar);
  narrowPack(values, out);
}

// Reduces packs in the order in which they are added. A single pack comes out unchanged, bit by bit.
template <class T, class Op, uint32_t kBytes>
class Accumulator {
 public:
  using Packed = Pack<T, kBytes>;
  __device__ __forceinline__ explicit Accumulator(const Adjustment<T>& adjust) : adjust_(adjust) {}

  // The first.
  __device__ __forceinline__ void begin(const Packed& pack, bool scaled) {
    first_ = pack;
    adjust(first_, scaled);
    if constexpr (Op::kReduces) widenPack(first_, sums_);
  }
  __device__ __forceinline__ void add(const Packed& pack, bool scaled) {
    if constexpr (Op::kReduces) {
      alone_ = false;
      Packed added = pack;
      adjust(added, scaled);
      WideOf<T> values[Packed::kCount];
      widenPack(added, values);
#pragma unroll
      for (uint32_t e = 0; e < Packed::kCount; e++) sums_[e] = Op::apply(sums_[e], values[e]);
    }
  }
  __device__ __forceinline__ Packed result() const {
    if constexpr (Op::kReduces) {
      if (alone_) return first_;
      Packed out;
      narrowPack(sums_, out);
      if constexpr (Op::kDivides) {
        if (adjust_.divisor == 1) return out;
#pragma unroll
        for (T& element : out.elements) element = quotientOf(element, adjust_.divisor);
      }
      return out;
    } else {
      return first_;
    }
  }

 private:
  __device__ __forceinline__ void adjust(Packed& pack, bool scaled) const {
    if constexpr (Op::kScales) {
      if (scaled) scalePack(pack, adjust_.scalar, pack);
    }
  }

  const Adjustment<T>& adjust_;
  WideOf<T> sums_[Packed::kCount];
  Packed first_;
  bool alone_ = true;
};

// Which source of a reduction is multiplied: the number of one, or
inline constexpr uint32_t kNoSource = ~0u, kAllSources = ~0u - 1;

// Reduces the packs of `count` sources. load(s): the pack of source s.
template <class T, class Op, uint32_t kBytes>
__device__ __forceinline__ Pack<T, kBytes> reducePacks(uint32_t count, const Adjustment<T>& adjust, uint32_t scaled,
                                                       auto&& load) {
  const auto isScaled = [&](uint32_t s) { return scaled == s || scaled == kAllSources; };
  Accumulator<T, Op, kBytes> accumulator(adjust);
  accumulator.begin(load(0), isScaled(0));
#pragma unroll
  for (uint32_t s = 1; s < count; s++) accumulator.add(load(s), isScaled(s));
  return accumulator.result();
}

}  // namespace ncclrun::cuda
