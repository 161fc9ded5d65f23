// Arithmetic of the GPU: all threads of a block fold vectors together. The twin of device/host/fold.h, with the same
// rules: from left to right, integers wrap around, 8- and 16-bit floats are folded in float and rounded once.
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
    __nv_fp8_e5m2 out;
    out.__x = __nv_cvt_float_to_fp8(value, isinf(value) ? __NV_NOSAT : __NV_SATFINITE, __NV_E5M2);
    return out;
  }
};

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
  uint32_t scaled = ~0u;  // number of the source to be multiplied
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
template <class T>
struct alignas(16) Pack {
  static constexpr int kCount = 16 / sizeof(T);
  T elements[kCount];
};

template <class T, class Op>
__device__ __forceinline__ T combineOne(const T* const* sources, uint32_t count, size_t i,
                                        const Adjustment<T>& adjust) {
  const auto load = [&](uint32_t s) {
    const auto value = Wide<T>::widen(sources[s][i]);
    if constexpr (Op::kScales) {
      if (s == adjust.scaled) return Wide<T>::widen(Wide<T>::narrow(value * adjust.scalar));
    }
    return value;
  };
  auto sum = load(0);
  for (uint32_t s = 1; s < count; s++) sum = Op::apply(sum, load(s));
  if constexpr (Op::kDivides) {
    using Long = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
    if (adjust.divisor > 1) return T(Long(T(sum)) / Long(adjust.divisor));
  }
  return Wide<T>::narrow(sum);
}

template <class T, class Op>
__device__ __forceinline__ Pack<T> combine(const Pack<T>* const* sources, uint32_t count, size_t i,
                                           const Adjustment<T>& adjust) {
  Pack<T> first = sources[0][i];
  if constexpr (!Op::kFolds) return first;
  if (count == 1 && !(Op::kScales && adjust.scaled == 0)) return first;
  typename Wide<T>::Type sums[Pack<T>::kCount];
#pragma unroll
  for (int e = 0; e < Pack<T>::kCount; e++) sums[e] = Wide<T>::widen(first.elements[e]);
  const auto scale = [&](uint32_t s, typename Wide<T>::Type value) {
    if constexpr (Op::kScales) {
      if (s == adjust.scaled) return Wide<T>::widen(Wide<T>::narrow(value * adjust.scalar));
    }
    return value;
  };
#pragma unroll
  for (int e = 0; e < Pack<T>::kCount; e++) sums[e] = scale(0, sums[e]);
  for (uint32_t s = 1; s < count; s++) {
    const Pack<T> next = sources[s][i];
#pragma unroll
    for (int e = 0; e < Pack<T>::kCount; e++) sums[e] = Op::apply(sums[e], scale(s, Wide<T>::widen(next.elements[e])));
  }
#pragma unroll
  for (int e = 0; e < Pack<T>::kCount; e++) {
    first.elements[e] = Wide<T>::narrow(sums[e]);
    if constexpr (Op::kDivides) {
      using Long = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
      if (adjust.divisor > 1) first.elements[e] = T(Long(first.elements[e]) / Long(adjust.divisor));
    }
  }
  return first;
}

// kSources, kTargets: how many there are, known when compiled, so that the pointers stay in registers; 0: any number.
template <class T, class Op, uint32_t kSources, uint32_t kTargets>
__device__ __forceinline__ void foldCounted(T* const* targets, uint32_t anyTargets, const T* const* sources,
                                            uint32_t anySources, size_t count, const Adjustment<T>& adjust) {
  const uint32_t sourceCount = kSources != 0 ? kSources : anySources;
  const uint32_t targetCount = kTargets != 0 ? kTargets : anyTargets;
  uintptr_t bits = 0;
  for (uint32_t t = 0; t < targetCount; t++) bits |= reinterpret_cast<uintptr_t>(targets[t]);
  for (uint32_t s = 0; s < sourceCount; s++) bits |= reinterpret_cast<uintptr_t>(sources[s]);
  size_t done = 0;
  if (bits % sizeof(Pack<T>) == 0) {
    constexpr int kUnroll = 4;
    const size_t packs = count / Pack<T>::kCount;
    const auto* packSources = reinterpret_cast<const Pack<T>* const*>(sources);
    const auto* packTargets = reinterpret_cast<Pack<T>* const*>(targets);
    size_t i = threadIdx.x;
    for (; i + (kUnroll - 1) * blockDim.x < packs; i += kUnroll * blockDim.x) {
      Pack<T> values[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; u++)
        values[u] = combine<T, Op>(packSources, sourceCount, i + u * blockDim.x, adjust);
      for (uint32_t t = 0; t < targetCount; t++) {
#pragma unroll
        for (int u = 0; u < kUnroll; u++) packTargets[t][i + u * blockDim.x] = values[u];
      }
    }
    for (; i < packs; i += blockDim.x) {
      const Pack<T> value = combine<T, Op>(packSources, sourceCount, i, adjust);
      for (uint32_t t = 0; t < targetCount; t++) packTargets[t][i] = value;
    }
    done = packs * Pack<T>::kCount;
  }
  for (size_t i = done + threadIdx.x; i < count; i += blockDim.x) {
    const T value = combineOne<T, Op>(sources, sourceCount, i, adjust);
    for (uint32_t t = 0; t < targetCount; t++) targets[t][i] = value;
  }
}

// By all threads of the block. No barrier inside.
template <class T, class Op>
__device__ __forceinline__ void fold(T* const* targets, uint32_t targetCount, const T* const* sources,
                                     uint32_t sourceCount, size_t count, const Adjustment<T>& adjust = {}) {
  if constexpr (!Op::kFolds) {
    foldCounted<T, Op, 1, 0>(targets, targetCount, sources, 1, count, adjust);
  } else if (sourceCount == 1 && targetCount == 1) {
    foldCounted<T, Op, 1, 1>(targets, 1, sources, 1, count, adjust);
  } else if (sourceCount == 1 && targetCount == 2) {
    foldCounted<T, Op, 1, 2>(targets, 2, sources, 1, count, adjust);
  } else if (sourceCount == 2 && targetCount == 1) {
    foldCounted<T, Op, 2, 1>(targets, 1, sources, 2, count, adjust);
  } else if (sourceCount == 2 && targetCount == 2) {
    foldCounted<T, Op, 2, 2>(targets, 2, sources, 2, count, adjust);
  } else {
    foldCounted<T, Op, 0, 0>(targets, targetCount, sources, sourceCount, count, adjust);
  }
}

}  // namespace ncclrun::cuda
