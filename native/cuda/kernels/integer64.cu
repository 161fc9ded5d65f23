#include "cuda/kernels/block.cuh"

NCCLRUN_REDUCTIONS(ncclrun::cuda::TypedOps<uint64_t, int64_t>)
NCCLRUN_SUMS(FirstSum, uint64_t)
