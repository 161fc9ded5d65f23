// Arithmetic of eight one-byte integers in a word, all at once.
#pragma once
#include "cuda/kernels/arithmetic.cuh"

namespace ncclrun::cuda {

// Of bytes that do not carry into one another: the lower seven bits are added, the highest is their exclusive or.
__device__ __forceinline__ uint64_t addBytes(uint64_t a, uint64_t b) {
  constexpr uint64_t kHighest = 0x8080808080808080;
  return ((a & ~kHighest) + (b & ~kHighest)) ^ ((a ^ b) & kHighest);
}

// Modulo 256, thus of either sign. Apart: long for an operator that is seldom used.
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
