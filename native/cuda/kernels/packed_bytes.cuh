// SIMD arithmetic on the eight one-byte integers of a word.
#pragma once
#include "cuda/kernels/arithmetic.cuh"

namespace ncclrun::cuda {

// Adds bytes without carries between them: adds the lower seven bits, and computes the highest by exclusive or.
__device__ __forceinline__ uint64_t addBytes(uint64_t a, uint64_t b) {
  constexpr uint64_t kHighest = 0x8080808080808080;
  return ((a & ~kHighest) + (b & ~kHighest)) ^ ((a ^ b) & kHighest);
}

// Multiplies modulo 256, for signed and unsigned bytes. Not inlined: long code for an operator that is seldom used.
inline __device__ __noinline__ uint64_t multiplyBytes(uint64_t a, uint64_t b) {
  uint64_t out = 0;
#pragma unroll
  for (uint32_t shift = 0; shift < 64; shift += 8) out |= ((a >> shift) * (b >> shift) & 0xff) << shift;
  return out;
}

// T: int8_t or uint8_t; Op: Sum, Prod, Max or Min.
template <class T, class Op>
__device__ __forceinline__ uint64_t applyToBytes(uint64_t a, uint64_t b) {
  if constexpr (std::is_same_v<Op, Sum>) return addBytes(a, b);
  if constexpr (std::is_same_v<Op, Prod>) return multiplyBytes(a, b);
  const auto half = [](uint32_t x, uint32_t y) {
    if constexpr (std::is_same_v<Op, Max>) return std::is_signed_v<T> ? __vmaxs4(x, y) : __vmaxu4(x, y);
    return std::is_signed_v<T> ? __vmins4(x, y) : __vminu4(x, y);
  };
  return uint64_t(half(uint32_t(a >> 32), uint32_t(b >> 32))) << 32 | half(uint32_t(a), uint32_t(b));
}

}  // namespace ncclrun::cuda
