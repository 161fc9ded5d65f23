#include "device/cuda/block.cuh"

NCCLRUN_MODULE(ncclrun::cuda::Kinds<float, double>)
