#include "device/cuda/block.cuh"

NCCLRUN_MODULE(ncclrun::cuda::Kinds<uint32_t, int32_t>)
