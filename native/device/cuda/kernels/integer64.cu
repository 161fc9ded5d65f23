#include "device/cuda/block.cuh"

NCCLRUN_MODULE(ncclrun::cuda::Kinds<uint64_t, int64_t>)
