#include "cuda/kernels/block.cuh"

NCCLRUN_REDUCTIONS(ncclrun::cuda::TypedOps<__half, __nv_bfloat16>)
NCCLRUN_SUMS(FirstSum, __half)
NCCLRUN_SUMS(SecondSum, __nv_bfloat16)
