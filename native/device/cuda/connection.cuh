// A connection between two GPUs that can store into each other's memory. Slots and `tail` lie in the receiver's memory,
// `head` in the sender's: each side polls its own memory and stores into the other's (stores cross NVLink faster than
// loads).
#pragma once
#include <cstdint>

namespace ncclrun::cuda {

// One end, in the memory of the GPU that uses it.
struct Endpoint {
  char* slots;
  uint64_t* tail;  // steps published by the sender
  uint64_t* head;  // steps freed by the receiver
  uint32_t steps;
  uint32_t stepBytes;
  uint64_t step;   // this end's next step: advances in the kernel, so a captured launch can be replayed
  uint64_t bytes;  // payload sent or received so far
};

// Everything that passes between GPUs is released by the writer and acquired by the reader, system-wide.
__device__ __forceinline__ uint64_t loadAcquire(const uint64_t* from) {
  uint64_t value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
  return value;
}
__device__ __forceinline__ void storeRelease(uint64_t* to, uint64_t value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
}
__device__ __forceinline__ uint32_t loadVolatile(const uint32_t* from) {
  uint32_t value;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}
__device__ __forceinline__ uint64_t nanoseconds() {
  uint64_t value;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value));
  return value;
}

}  // namespace ncclrun::cuda
