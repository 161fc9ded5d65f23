// Loads and stores between GPUs, and named barriers of a block. A volatile access is a relaxed access of system scope.
#pragma once
#include <cstdint>

#ifndef __CUDACC__
#include "simt/memory.h"  // test/driver: all of this for threads that are fibers
#else

#define NCCLRUN_PARAMETER(Type) const __grid_constant__ Type
#define NCCLRUN_SHARED(Type, name) __shared__ Type name
#define NCCLRUN_DYNAMIC_SHARED(Type, name)                \
  extern __shared__ __align__(128) char ncclrunDynamic[]; \
  Type& name = *reinterpret_cast<Type*>(ncclrunDynamic)

namespace ncclrun::cuda {

// In kernels for tests (test/gpu): delays at random for some microseconds before data is posted and before a poll.
__device__ __forceinline__ void maybeDelay() {
#ifdef NCCLRUN_TEST_DELAYS
  const uint32_t number = (uint32_t(clock64()) + threadIdx.x * 7919) * 2654435761u;
  if (number >> 27 == 0) __nanosleep(number >> 12 & 0x3fff);
#endif
}

// Invalidates the SM's L1 cache: use it for the last poll of a wait only.
__device__ __forceinline__ uint32_t loadAcquire(const uint32_t* from) {
  maybeDelay();
  uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}
__device__ __forceinline__ void storeRelease(uint32_t* to, uint32_t value) {
  maybeDelay();
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}
__device__ __forceinline__ void storeRelease(uint64_t* to, uint64_t value) {
  maybeDelay();
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
}
// Grants credit to a sender after a barrier of the threads that have read the slot; they have waited for their loads. A
// release would also wait for their stores and for those of the next step.
__device__ __forceinline__ void storeCredit(uint32_t* to, uint32_t value) {
  maybeDelay();
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}
// A release of GPU scope.
__device__ __forceinline__ void addRelease(uint32_t* to, uint32_t value) {
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}
__device__ __forceinline__ uint32_t loadVolatile(const uint32_t* from) {
  maybeDelay();
  uint32_t value;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}
__device__ __forceinline__ void storeVolatile(uint32_t* to, uint32_t value) {
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}
__device__ __forceinline__ void storeVolatile(uint64_t* to, uint64_t value) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
}
// 16 bytes, aligned.
__device__ __forceinline__ void storeVolatile(uint64_t* to, uint64_t first, uint64_t second) {
  asm volatile("st.volatile.global.v2.u64 [%0], {%1,%2};" ::"l"(to), "l"(first), "l"(second) : "memory");
}
// Counters in this GPU's memory: returns the value before.
__device__ __forceinline__ uint64_t increment(uint64_t* counter) {
  uint64_t before;
  asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], 1;" : "=l"(before) : "l"(counter) : "memory");
  return before;
}
__device__ __forceinline__ uint32_t increment(uint32_t* counter) {
  uint32_t before;
  asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(counter) : "memory");
  return before;
}
__device__ __forceinline__ uint4 loadLLLine(const uint4* from) {
  maybeDelay();
  uint4 v;
  asm volatile("ld.volatile.global.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from)
               : "memory");
  return v;
}
__device__ __forceinline__ void storeLLLine(uint4* to, uint64_t data, uint32_t flag) {
  maybeDelay();
  asm volatile("st.volatile.global.v4.u32 [%0], {%1,%2,%3,%2};" ::"l"(to), "r"(uint32_t(data)), "r"(flag),
               "r"(uint32_t(data >> 32))
               : "memory");
}
// A lane's 16 bytes of an LL128 line.
__device__ __forceinline__ void loadLL128Line(const uint64_t* from, uint64_t& a, uint64_t& b) {
  asm volatile("ld.volatile.global.v2.u64 {%0,%1}, [%2];" : "=l"(a), "=l"(b) : "l"(from) : "memory");
}
__device__ __forceinline__ void storeLL128Line(uint64_t* to, uint64_t a, uint64_t b) {
  asm volatile("st.volatile.global.v2.u64 [%0], {%1,%2};" ::"l"(to), "l"(a), "l"(b) : "memory");
}
__device__ __forceinline__ uint64_t nanoseconds() {
  uint64_t value;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value));
  return value;
}

// Number of a wait's polls between two polls of the host's flags.
inline constexpr uint32_t kPollsPerHostPoll = 1024;
// Called in a wait after an unsuccessful poll. Empty, because a GPU runs the other threads anyway; the stand-in's
// version switches threads.
__device__ __forceinline__ void yieldToOtherThreads() {}

// Named barriers of a block. `threads`: number of threads that take part, including those that only arrive.
__device__ __forceinline__ void barrierSync(uint32_t barrier, uint32_t threads) {
  asm volatile("barrier.cta.sync.aligned %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
__device__ __forceinline__ void barrierArrive(uint32_t barrier, uint32_t threads) {
  asm volatile("barrier.cta.arrive.aligned %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

}  // namespace ncclrun::cuda
#endif
