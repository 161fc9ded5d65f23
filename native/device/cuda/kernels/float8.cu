#include "device/cuda/block.cuh"

NCCLRUN_MODULE(ncclrun::cuda::Kinds<__nv_fp8_e4m3, __nv_fp8_e5m2>)
