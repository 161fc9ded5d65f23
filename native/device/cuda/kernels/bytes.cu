// What only moves: bytes are enough.
#include "device/cuda/block.cuh"

NCCLRUN_MODULE(ncclrun::cuda::Bytes)
