#include "cuda/kernels/block.cuh"

NCCLRUN_REDUCTIONS(ncclrun::cuda::TypedOps<float, double>)
NCCLRUN_SUMS(FirstSum, float)
NCCLRUN_SUMS(SecondSum, double)
