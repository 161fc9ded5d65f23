/* A product of two matrices, which takes all of a GPU's SMs for about a millisecond. */
#ifndef PRODUCT_BENCH_H_
#define PRODUCT_BENCH_H_

#include <cuda_runtime_api.h>

typedef struct {
  float *left, *right, *result;
} Product;

#ifdef __cplusplus
extern "C" {
#endif

/* In memory of the current GPU; filled by the stream. */
cudaError_t product_make(Product* product, cudaStream_t stream);
cudaError_t product_compute(const Product* product, cudaStream_t stream);
/* Adds to *wrong (device memory) the elements that are not what they must be. */
cudaError_t product_check(const Product* product, unsigned long long* wrong, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
