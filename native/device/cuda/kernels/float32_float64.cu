#include "device/cuda/block.cuh"

NCCLRUN_REDUCTIONS(ncclrun::cuda::Kinds<float, double>)
