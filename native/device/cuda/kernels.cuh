// The algorithms of native/algorithm as kernels: one block per channel.
#pragma once
#include "algorithm/direct.h"
#include "algorithm/ring.h"
#include "algorithm/send_receive.h"
#include "algorithm/tree.h"
#include "device/cuda/primitives.cuh"

namespace ncclrun::cuda {

// What a launch gives every block. Everything behind the pointers lies in this GPU's memory.
struct Launch {
  Work work;          // block, place and ring are each block's own
  Endpoint* ends;     // block b: receives at [b * (receives + sends)], then sends
  uint32_t receives;  // connections per block
  uint32_t sends;
  const uint32_t* rings;  // block b's ring at [b * ranks]; null for forms without
  const uint32_t* abort;  // memory that the host can write: not 0 ends every wait
  const void* scalar;     // of a pre-multiplied sum: as it is folded (float for 8- and 16-bit floats)
  uint32_t divisor;       // of an average of whole numbers
};

template <class T>
__device__ __forceinline__ Adjustment<T> adjustmentOf(const Launch& launch) {
  Adjustment<T> adjust;
  if (launch.scalar != nullptr) adjust.scalar = *static_cast<const typename Wide<T>::Type*>(launch.scalar);
  if (launch.divisor > 1) adjust.divisor = launch.divisor;
  return adjust;
}

// One block of a launch.
template <class T, class Op>
struct Block {
  Work work;
  Primitives<T, Op> primitives;

  __device__ explicit Block(const Launch& launch)
      : work(launch.work),
        primitives(endsOf(launch), launch.receives, endsOf(launch) + launch.receives, launch.sends, launch.abort,
                   adjustmentOf<T>(launch)) {
    work.block = blockIdx.x;
    work.blocks = gridDim.x;
    if (launch.rings == nullptr) return;
    work.ring = launch.rings + blockIdx.x * work.ranks;
    while (work.ring[work.place] != work.rank) work.place++;
  }

 private:
  static __device__ Endpoint* endsOf(const Launch& launch) {
    return launch.ends + blockIdx.x * (launch.receives + launch.sends);
  }
};

}  // namespace ncclrun::cuda

// A kernel of one algorithm, operator and type: NCCLRUN_KERNEL(AllReduceRing, ringAllReduce, Sum, Float, float) is
// ncclrunAllReduceRingSumFloat. Grid: channels of the form; block: its threads.
#define NCCLRUN_KERNEL(Name, algorithm, Op, Type, T)                                                         \
  extern "C" __global__ void ncclrun##Name##Op##Type(const __grid_constant__ ncclrun::cuda::Launch launch) { \
    ncclrun::cuda::Block<T, ncclrun::cuda::Op> block(launch);                                                \
    ncclrun::algorithm(block.primitives, block.work);                                                        \
  }
#define NCCLRUN_ALL_REDUCE_KERNELS(Op, Type, T)                               \
  NCCLRUN_KERNEL(AllReduceRing, ringAllReduce, Op, Type, T)                   \
  NCCLRUN_KERNEL(AllReduceDirectOneShot, directOneShotAllReduce, Op, Type, T) \
  NCCLRUN_KERNEL(AllReduceDirectTwoShot, directTwoShotAllReduce, Op, Type, T)
