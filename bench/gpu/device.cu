#include "device.h"

namespace {

__host__ __device__ float element(size_t i, int rank) { return float((i * 7 + i / 1021 + size_t(rank) * 5) % 13); }

__global__ void fillKernel(float* to, size_t count, int rank) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x) {
    to[i] = element(i, rank);
  }
}

__global__ void checkKernel(const float* result, size_t count, Expectation expectation, size_t shift, size_t part,
                            int from, int ranks, unsigned long long* wrong) {
  unsigned long long mine = 0;
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x) {
    float expected = 0;
    if (expectation == EXPECT_SUM) {
      for (int r = 0; r < ranks; r++) expected += element(shift + i, r);
    } else if (expectation == EXPECT_FROM) {
      expected = element(shift + i, from);
    } else {
      expected = element(shift + i % part, int(i / part));
    }
    if (!(result[i] == expected)) mine++;
  }
  if (mine != 0) atomicAdd(wrong, mine);
}

__global__ void nothingKernel() {}

unsigned blocksFor(size_t count) {
  const size_t blocks = (count + 255) / 256;
  return unsigned(blocks < 1 ? 1 : blocks > 2048 ? 2048 : blocks);
}

}  // namespace

cudaError_t fill(float* to, size_t count, int rank, cudaStream_t stream) {
  fillKernel<<<blocksFor(count), 256, 0, stream>>>(to, count, rank);
  return cudaGetLastError();
}

cudaError_t check(const float* result, size_t count, Expectation expectation, size_t shift, size_t part, int from,
                  int ranks, unsigned long long* wrong, cudaStream_t stream) {
  checkKernel<<<blocksFor(count), 256, 0, stream>>>(result, count, expectation, shift, part, from, ranks, wrong);
  return cudaGetLastError();
}

cudaError_t nothing(cudaStream_t stream) {
  nothingKernel<<<1, 32, 0, stream>>>();
  return cudaGetLastError();
}
