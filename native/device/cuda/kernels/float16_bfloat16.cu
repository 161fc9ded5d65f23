#include "device/cuda/block.cuh"

NCCLRUN_REDUCTIONS(ncclrun::cuda::Kinds<__half, __nv_bfloat16>)
