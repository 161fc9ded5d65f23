// Instantiates the algorithms as device code. Compiled to a fatbin wherever nvcc exists (native/CMakeLists.txt), so
// that what does not fit the GPU is found out on machines without one.
#include "device/cuda/kernels.cuh"

NCCLRUN_ALL_REDUCE_KERNELS(Sum, Float, float)
NCCLRUN_ALL_REDUCE_KERNELS(Sum, Int32, int32_t)
NCCLRUN_ALL_REDUCE_KERNELS(Sum, Bfloat16, __nv_bfloat16)
