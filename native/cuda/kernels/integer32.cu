#include "cuda/kernels/block.cuh"

NCCLRUN_REDUCTIONS(ncclrun::cuda::TypedOps<uint32_t, int32_t>)
NCCLRUN_SUMS(FirstSum, uint32_t)
