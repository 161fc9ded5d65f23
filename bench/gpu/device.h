/* Kernels of the benchmark: what fills buffers, checks results, and does nothing. */
#ifndef DEVICE_H_
#define DEVICE_H_

#include <cuda_runtime_api.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What an element of a result must be. */
typedef enum {
  EXPECT_SUM,   /* the sum over ranks of element shift + i */
  EXPECT_FROM,  /* element shift + i of rank `from` */
  EXPECT_PARTS, /* part p, of `part` elements, is rank p's elements from shift on */
  EXPECT_NOTHING
} Expectation;

/* to[i] = element i of `rank`: whole numbers so small that sums are exact in any order. */
cudaError_t fill(float* to, size_t count, int rank, cudaStream_t stream);
/* *wrong (device memory) counts elements that differ from the expectation. */
cudaError_t check(const float* result, size_t count, Expectation expectation, size_t shift, size_t part, int from,
                  int ranks, unsigned long long* wrong, cudaStream_t stream);
/* Copies by as many SMs as the largest operations have; addresses and bytes are multiples of 16. */
cudaError_t store(void* to, const void* from, size_t bytes, cudaStream_t stream);
/* An empty kernel of one block. */
cudaError_t nothing(cudaStream_t stream);
/* The same by cuLaunchKernel, and with as many parameters as an operation's kernel has. */
enum { PARAMETER_BYTES = 512 };
cudaError_t nothing_by_driver(cudaStream_t stream);
cudaError_t nothing_with_parameters(cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
