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

inline void __syncthreads() { simt::meet(0, blockDim.x); }
inline void __syncwarp(uint32_t mask = ~0u) { simt::meetLanes(mask, false); }
inline bool __any_sync(uint32_t mask, bool says) { return simt::meetLanes(mask, says); }
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
