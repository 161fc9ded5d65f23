// Access to the user's memory in words of 8 bytes at any address. The last word may be shorter.
#pragma once
#include "algorithm/work.h"
#include "cuda/kernels/word_reduction.cuh"

namespace ncclrun::cuda {

// Number of words of `bytes` at both addresses (null: unused) that take one access each.
__device__ __forceinline__ uint32_t wholeWords(const void* a, const void* b, uint32_t bytes) {
  const uintptr_t bits = reinterpret_cast<uintptr_t>(a) | reinterpret_cast<uintptr_t>(b);
  return bits % 8 == 0 ? bytes / 8 : 0;
}
__device__ __forceinline__ uint64_t loadWord(const void* from, uint32_t i) {
  return static_cast<const uint64_t*>(from)[i];
}
__device__ __forceinline__ void storeWord(void* to, uint32_t i, uint64_t word) { static_cast<uint64_t*>(to)[i] = word; }

// The part of word i below `bytes`. Not inlined, because it is seldom needed.
inline __device__ __noinline__ uint64_t loadPart(const void* from, uint32_t i, uint32_t bytes) {
  const auto* at = static_cast<const uint8_t*>(from) + i * 8;
  uint64_t word = 0;
#pragma unroll
  for (uint32_t b = 0; b < 8; b++) {
    if (i * 8 + b < bytes) word |= uint64_t(at[b]) << (8 * b);
  }
  return word;
}
inline __device__ __noinline__ void storePart(void* to, uint32_t i, uint32_t bytes, uint64_t word) {
  auto* at = static_cast<uint8_t*>(to) + i * 8;
#pragma unroll
  for (uint32_t b = 0; b < 8; b++) {
    if (i * 8 + b < bytes) at[b] = uint8_t(word >> (8 * b));
  }
}

// Copies a single rank's contribution with all threads of a block. `reduction` is passed by value so that it stays in
// registers.
template <class Ops>
__device__ __noinline__ void copyWords(const WordReduction<Ops> reduction, const void* source, void* target,
                                       size_t bytes) {
  const auto adjusted = [&](uint64_t word) {
    if constexpr (WordReduction<Ops>::kReduces) {
      return reduction.scales() ? reduction.scaled(word) : word;
    } else {
      return word;
    }
  };
  // Words are counted in 32 bits.
  constexpr uint32_t kPiece = 1u << 30;
  constexpr uint32_t kUnroll = 4;
  for (size_t begin = 0; begin < bytes; begin += kPiece) {
    const void* const from = static_cast<const char*>(source) + begin;
    void* const to = static_cast<char*>(target) + begin;
    const uint32_t length = uint32_t(lesser(kPiece, bytes - begin));
    const uint32_t whole = wholeWords(from, to, length);
    for (uint32_t first = threadIdx.x; first < whole; first += kUnroll * blockDim.x) {
      const auto at = [&](uint32_t u) { return first + u * blockDim.x; };
      uint64_t words[kUnroll];
#pragma unroll
      for (uint32_t u = 0; u < kUnroll; u++) words[u] = at(u) < whole ? loadWord(from, at(u)) : 0;
#pragma unroll
      for (uint32_t u = 0; u < kUnroll; u++) {
        if (at(u) < whole) storeWord(to, at(u), adjusted(words[u]));
      }
    }
    for (uint32_t i = whole + threadIdx.x; i * 8 < length; i += blockDim.x)
      storePart(to, i, length, adjusted(loadPart(from, i, length)));
  }
}

}  // namespace ncclrun::cuda
