// The algorithms of native/algorithm as kernels: one block per channel.
#pragma once
#include "algorithm/direct.h"
#include "algorithm/ring.h"
#include "device/cuda/primitives.cuh"

namespace ncclrun::cuda {

// What a launch gives every block. Everything behind the pointers lies in this GPU's memory.
struct Launch {
  Work work;          // block, place and ring are each block's own
  Endpoint* ends;     // block b: receives at [b * (receives + sends)], then sends
  uint32_t receives;  // connections per block
  uint32_t sends;
  const uint32_t* rings;  // block b's ring at [b * ranks]; null for direct forms
  const uint32_t* abort;  // memory that the host can write: not 0 ends every wait
};

enum class Kernel { ring, directOneShot, directTwoShot };

template <class T, class Op, Kernel kKernel>
__device__ void allReduce(const Launch& launch) {
  Work work = launch.work;
  work.block = blockIdx.x;
  work.blocks = gridDim.x;
  Endpoint* ends = launch.ends + blockIdx.x * (launch.receives + launch.sends);
  Primitives<T, Op> primitives(ends, launch.receives, ends + launch.receives, launch.sends, launch.abort);
  if constexpr (kKernel == Kernel::ring) {
    work.ring = launch.rings + blockIdx.x * work.ranks;
    while (work.ring[work.place] != work.rank) work.place++;
    ringAllReduce(primitives, work);
  } else if constexpr (kKernel == Kernel::directOneShot) {
    directOneShotAllReduce(primitives, work);
  } else {
    directTwoShotAllReduce(primitives, work);
  }
}

}  // namespace ncclrun::cuda

// Kernels of one type and operator: ncclrunAllReduceRingSumFloat and so on. Grid: channels of the form; block: its
// threads.
#define NCCLRUN_ALL_REDUCE_KERNEL(Form, kernel, Op, Name, T)                                                          \
  extern "C" __global__ void ncclrunAllReduce##Form##Op##Name(const __grid_constant__ ncclrun::cuda::Launch launch) { \
    ncclrun::cuda::allReduce<T, ncclrun::cuda::Op, ncclrun::cuda::Kernel::kernel>(launch);                            \
  }
#define NCCLRUN_ALL_REDUCE_KERNELS(Op, Name, T)                        \
  NCCLRUN_ALL_REDUCE_KERNEL(Ring, ring, Op, Name, T)                   \
  NCCLRUN_ALL_REDUCE_KERNEL(DirectOneShot, directOneShot, Op, Name, T) \
  NCCLRUN_ALL_REDUCE_KERNEL(DirectTwoShot, directTwoShot, Op, Name, T)
