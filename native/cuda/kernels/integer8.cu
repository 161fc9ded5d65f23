#include "cuda/kernels/block.cuh"

NCCLRUN_ALL_ROUTINES(Reduce, ncclrun::cuda::TypedOps<uint8_t, int8_t>)
