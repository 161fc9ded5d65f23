// What nvcc knows without being told, for a C++ compiler that compiles kernels: included before all else.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <vector_types.h>

#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "simt/machine.h"

#define __launch_bounds__(...)
#undef __global__
#define __global__ __attribute__((visibility("default")))
#ifndef __noinline__
#define __noinline__ __attribute__((noinline))
#endif

using std::isinf;
using std::signbit;

// After NVIDIA's headers, which know these too.
#define threadIdx (::simt::place.thread)
#define blockIdx (::simt::place.block)
#define blockDim (::simt::place.blockThreads)
#define gridDim (::simt::place.gridBlocks)

inline void __syncthreads() { simt::barrierSync(0, blockDim.x); }
inline void __syncwarp(uint32_t mask = ~0u) { simt::syncLanes(mask, false); }
inline bool __any_sync(uint32_t mask, bool says) { return simt::syncLanes(mask, says); }
#define __activemask ::simt::activeLanes
inline int __ffs(uint32_t bits) { return bits == 0 ? 0 : std::countr_zero(bits) + 1; }

inline void __threadfence_block() { std::atomic_thread_fence(std::memory_order_seq_cst); }
inline void __threadfence_system() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  simt::delay();
}
inline uint32_t atomicAdd_system(uint32_t* to, uint32_t what) { return std::atomic_ref(*to).fetch_add(what); }

// Compiled without contraction: what is rounded here stays so.
inline float __fmul_rn(float a, float b) { return a * b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }

// Bytes of two words, each by itself.
template <class Byte>
inline unsigned eachByte(unsigned a, unsigned b, auto&& choose) {
  unsigned out = 0;
  for (unsigned shift = 0; shift < 32; shift += 8)
    out |= unsigned(uint8_t(choose(Byte(a >> shift), Byte(b >> shift)))) << shift;
  return out;
}
inline unsigned __vmaxs4(unsigned a, unsigned b) {
  return eachByte<int8_t>(a, b, [](int x, int y) { return x > y ? x : y; });
}
inline unsigned __vmaxu4(unsigned a, unsigned b) {
  return eachByte<uint8_t>(a, b, [](int x, int y) { return x > y ? x : y; });
}
inline unsigned __vmins4(unsigned a, unsigned b) {
  return eachByte<int8_t>(a, b, [](int x, int y) { return x < y ? x : y; });
}
inline unsigned __vminu4(unsigned a, unsigned b) {
  return eachByte<uint8_t>(a, b, [](int x, int y) { return x < y ? x : y; });
}

// As PTX has them: without NaNs where there is a number, and -0 less than +0. Found before C's, which leave zeros open.
namespace ncclrun::cuda {
template <class V>
inline V greaterOf(V a, V b) {
  if (a == b) return signbit(a) ? b : a;
  return a > b || b != b ? a : b;
}
template <class V>
inline V lesserOf(V a, V b) {
  if (a == b) return signbit(a) ? a : b;
  return a < b || b != b ? a : b;
}
inline float fmaxf(float a, float b) { return greaterOf(a, b); }
inline double fmax(double a, double b) { return greaterOf(a, b); }
inline float fminf(float a, float b) { return lesserOf(a, b); }
inline double fmin(double a, double b) { return lesserOf(a, b); }
}  // namespace ncclrun::cuda
