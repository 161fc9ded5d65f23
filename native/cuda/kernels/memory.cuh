// Loads and stores that cross between GPUs, and barriers of a block that not all threads wait at. A volatile access is
// a relaxed one of system scope.
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

// In kernels for tests (test/gpu), now and then for some microseconds: before what hands data on, and before a look for
// it.
__device__ __forceinline__ void maybeDelay() {
#ifdef NCCLRUN_TEST_DELAYS
  const uint32_t number = (uint32_t(clock64()) + threadIdx.x * 7919) * 2654435761u;
  if (number >> 27 == 0) __nanosleep(number >> 12 & 0x3fff);
#endif
}

// Empties the multiprocessor's first cache: for the last look of a wait, not for those before.
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
// Tells a sender that what it has stored was read, behind a barrier of those who have read it: they wait for what they
// load. A release would wait for their stores too, and for those of the next step.
__device__ __forceinline__ void storeCredit(uint32_t* to, uint32_t value) {
  maybeDelay();
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}
// For the same GPU.
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
__device__ __forceinline__ uint4 loadLine64(const uint4* from) {
  maybeDelay();
  uint4 v;
  asm volatile("ld.volatile.global.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from)
               : "memory");
  return v;
}
__device__ __forceinline__ void storeLine64(uint4* to, uint64_t data, uint32_t flag) {
  maybeDelay();
  asm volatile("st.volatile.global.v4.u32 [%0], {%1,%2,%3,%2};" ::"l"(to), "r"(uint32_t(data)), "r"(flag),
               "r"(uint32_t(data >> 32))
               : "memory");
}
// A lane's part of a line of 128 bytes.
__device__ __forceinline__ void loadLine128(const uint64_t* from, uint64_t& a, uint64_t& b) {
  asm volatile("ld.volatile.global.v2.u64 {%0,%1}, [%2];" : "=l"(a), "=l"(b) : "l"(from) : "memory");
}
__device__ __forceinline__ void storeLine128(uint64_t* to, uint64_t a, uint64_t b) {
  asm volatile("st.volatile.global.v2.u64 [%0], {%1,%2};" ::"l"(to), "l"(a), "l"(b) : "memory");
}
__device__ __forceinline__ uint64_t nanoseconds() {
  uint64_t value;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value));
  return value;
}

// How often a wait finds nothing before it looks at words of the host.
inline constexpr uint32_t kRoundsPerLook = 1024;
// In a wait, where what is awaited was not there: a GPU runs the other threads anyway.
__device__ __forceinline__ void letOthersRun() {}

// Barriers of a block: `threads` is how many come to this one, those that only tell included.
__device__ __forceinline__ void meetAt(uint32_t barrier, uint32_t threads) {
  asm volatile("barrier.cta.sync.aligned %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
__device__ __forceinline__ void tellAt(uint32_t barrier, uint32_t threads) {
  asm volatile("barrier.cta.arrive.aligned %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

}  // namespace ncclrun::cuda
#endif
