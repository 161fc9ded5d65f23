/* Kernels of the example: a product of two matrices, what both buffers begin with, and what must come out. All work on
 * memory of the current GPU and run on `stream`; they return what the launch said. */
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>

/* left is kRows × kDepth, right kDepth × kColumns, product kRows × kColumns, each row after row. So large that its blocks
 * go over the SMs many times: with few of them left to the last time, it makes no odds how many there are. */
constexpr int kRows = 8192, kColumns = 8192, kDepth = 256;

cudaError_t fillMatrices(float* left, float* right, cudaStream_t stream);
/* product = left · right. */
cudaError_t multiply(const float* left, const float* right, float* product, cudaStream_t stream);
/* Adds to *wrong the elements of the product that are not what the matrices of fillMatrices give. */
cudaError_t checkProduct(const float* product, unsigned long long* wrong, cudaStream_t stream);

/* What `rank` gives to the all-reduce: whole numbers, so small that sums are exact. */
cudaError_t fillGradients(float* gradients, size_t count, int rank, cudaStream_t stream);
/* Adds to *wrong the elements that are not the sum over all ranks. */
cudaError_t checkSums(const float* sums, size_t count, int ranks, unsigned long long* wrong, cudaStream_t stream);
