// Marks what is compiled for the host and, under nvcc, for the GPU as well. Such code uses no standard library.
#pragma once

#ifdef __CUDACC__
#define NCCLRUN_FN __host__ __device__ __forceinline__
#else
#define NCCLRUN_FN inline
#endif
