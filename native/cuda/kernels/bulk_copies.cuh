// Copies that one thread asks for and the hardware carries out beside it (cp.async.bulk of PTX ISA 8.0): from the GPU's
// memory into that of the block, and from there to wherever addresses lead. Addresses and bytes: multiples of 16.
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

// Those of one thread.
class BulkCopies {
 public:
  // `arrival`, in the block's memory, tells of loads, from begin() to end(): it is at its next turn whenever `count` of
  // them have come.
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
  // What this thread has seen or written so far comes before what it asks for from now on.
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
  // As a load of nothing: by any thread, behind what it has read and written.
  static __device__ __forceinline__ void arrive(uint64_t* arrival) {
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(inBlock(arrival)) : "memory");
#endif
  }
  // Until the arrival's turn number `turn`, from 0, is over: by any thread, which is not a turn behind.
  __device__ __forceinline__ void await(uint64_t* arrival, uint32_t turn) {
#if __CUDA_ARCH__ >= 900
    uint32_t done = 0;
    while (done == 0) {
      asm volatile(
          "{\n.reg .pred there;\nmbarrier.try_wait.parity.shared::cta.b64 there, [%1], %2;\n"
          "selp.u32 %0, 1, 0, there;\n}"
          : "=r"(done)
          : "r"(inBlock(arrival)), "r"(turn & 1)
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
  // Until all stores but the latest kLatest are where they lead.
  template <uint32_t kLatest>
  __device__ __forceinline__ void awaitStores() {
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.wait_group %0;" ::"n"(kLatest) : "memory");
#endif
  }
  // Until what they store may be overwritten.
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
