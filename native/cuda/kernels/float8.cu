#include "cuda/kernels/block.cuh"

NCCLRUN_ALL_ROUTINES(Reduce, ncclrun::cuda::TypedOps<__nv_fp8_e4m3, __nv_fp8_e5m2>)
