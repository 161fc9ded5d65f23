#include "device/cuda/block.cuh"

NCCLRUN_MODULE(ncclrun::cuda::Kinds<uint8_t, int8_t>)
