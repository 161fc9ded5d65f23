// Bulk copies that one thread issues and the hardware executes asynchronously (cp.async.bulk of PTX ISA 8.0): from
// global into shared memory, and from there to any global address. Addresses and bytes: multiples of 16.
#pragma once
#include <cstdint>

#ifndef __CUDACC__
#include "simt/bulk_copies.h"  // test/driver
#else

namespace ncclrun::cuda {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
inline constexpr bool kHasBulkCopies = false;
#else
inline constexpr bool kHasBulkCopies = true;
#endif

// The bulk copies of one thread.
class BulkCopies {
 public:
  // `arrival`, an mbarrier in shared memory, tracks loads from begin() to end(): it enters its next phase whenever
  // `count` of them have arrived.
  static __device__ __forceinline__ void begin(uint64_t* arrival, uint32_t count = 1) {
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(inBlock(arrival)), "r"(count) : "memory");
#endif
  }
  static __device__ __forceinline__ void end(uint64_t* arrival) {
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(inBlock(arrival)) : "memory");
#endif
  }
  // Orders this thread's earlier accesses before the copies that it issues from now on.
  static __device__ __forceinline__ void order() {
#if __CUDA_ARCH__ >= 900
    asm volatile("fence.proxy.async;" ::: "memory");
#endif
  }

  __device__ __forceinline__ void load(char* to, const char* from, uint32_t bytes, uint64_t* arrival) {
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(inBlock(arrival)), "r"(bytes)
                 : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(inBlock(to)),
        "l"(from), "r"(bytes), "r"(inBlock(arrival))
        : "memory");
#endif
  }
  // Arrives without a load; called by any thread after its reads and writes.
  static __device__ __forceinline__ void arrive(uint64_t* arrival) {
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(inBlock(arrival)) : "memory");
#endif
  }
  // Waits until phase number `phase`, from 0, is complete; called by any thread that is not a whole phase behind.
  __device__ __forceinline__ void await(uint64_t* arrival, uint32_t phase) {
#if __CUDA_ARCH__ >= 900
    uint32_t done = 0;
    while (done == 0) {
      asm volatile(
          "{\n.reg .pred there;\nmbarrier.try_wait.parity.shared::cta.b64 there, [%1], %2;\n"
          "selp.u32 %0, 1, 0, there;\n}"
          : "=r"(done)
          : "r"(inBlock(arrival)), "r"(phase & 1)
          : "memory");
    }
#endif
  }
  __device__ __forceinline__ void store(char* to, const char* from, uint32_t bytes) {
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(inBlock(from)), "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
#endif
  }
  // Waits until all stores but the latest kLatest have completed.
  template <uint32_t kLatest>
  __device__ __forceinline__ void awaitStores() {
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.wait_group %0;" ::"n"(kLatest) : "memory");
#endif
  }
  // Waits until their sources may be overwritten.
  template <uint32_t kLatest>
  __device__ __forceinline__ void awaitStoresRead() {
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kLatest) : "memory");
#endif
  }

 private:
  static __device__ __forceinline__ uint32_t inBlock(const void* address) {
    return uint32_t(__cvta_generic_to_shared(address));
  }
};

}  // namespace ncclrun::cuda
#endif
