#include "product.h"

namespace {

/* A block makes a square of the product with kTile rows, a slice of kSlice of the depth at a time; each of its threads
 * makes 8 × 8 elements of it: four quarters of 4 × 4, so that the threads of a warp read shared memory side by side. */
constexpr int kTile = 128, kSlice = 8, kThreads = 256;
static_assert(kRows % kTile == 0 && kColumns % kTile == 0 && kDepth % kSlice == 0);

__host__ __device__ int leftElement(int row, int k) { return (row + 3 * k) % 5; }
__host__ __device__ int rightElement(int k, int column) { return (2 * k + column) % 7; }
__host__ __device__ int gradient(size_t i, int rank) { return int((i * 7 + size_t(rank) * 5) % 13); }

__global__ void __launch_bounds__(kThreads, 2)
    multiplyKernel(const float* __restrict__ left, const float* __restrict__ right, float* __restrict__ product) {
  /* Two of each: one is filled while the other is used. */
  __shared__ __align__(16) float leftSlice[2][kSlice][kTile]; /* by columns */
  __shared__ __align__(16) float rightSlice[2][kSlice][kTile];
  const int thread = threadIdx.x, row = blockIdx.y * kTile, column = blockIdx.x * kTile;
  const int across = thread % 16 * 4, down = thread / 16 * 4;
  /* Which four elements of a slice this thread brings. */
  const int leftRow = thread / 2, leftColumn = thread % 2 * 4;
  const int rightRow = thread / 32, rightColumn = thread % 32 * 4;
  const float* fromLeft = left + size_t(row + leftRow) * kDepth + leftColumn;
  const float* fromRight = right + size_t(rightRow) * kColumns + column + rightColumn;

  float sums[8][8] = {};
  float4 nextLeft = *reinterpret_cast<const float4*>(fromLeft);
  float4 nextRight = *reinterpret_cast<const float4*>(fromRight);
  for (int slice = 0; slice < kDepth / kSlice; slice++) {
    float(&a)[kSlice][kTile] = leftSlice[slice % 2];
    float(&b)[kSlice][kTile] = rightSlice[slice % 2];
    a[leftColumn + 0][leftRow] = nextLeft.x;
    a[leftColumn + 1][leftRow] = nextLeft.y;
    a[leftColumn + 2][leftRow] = nextLeft.z;
    a[leftColumn + 3][leftRow] = nextLeft.w;
    *reinterpret_cast<float4*>(&b[rightRow][rightColumn]) = nextRight;
    __syncthreads();
    if (slice + 1 < kDepth / kSlice) {
      fromLeft += kSlice;
      fromRight += size_t(kSlice) * kColumns;
      nextLeft = *reinterpret_cast<const float4*>(fromLeft);
      nextRight = *reinterpret_cast<const float4*>(fromRight);
    }
#pragma unroll
    for (int k = 0; k < kSlice; k++) {
      alignas(16) float mine[8], others[8];
#pragma unroll
      for (int half = 0; half < 2; half++) {
        *reinterpret_cast<float4*>(mine + 4 * half) = *reinterpret_cast<float4*>(&a[k][down + 64 * half]);
        *reinterpret_cast<float4*>(others + 4 * half) = *reinterpret_cast<float4*>(&b[k][across + 64 * half]);
      }
#pragma unroll
      for (int i = 0; i < 8; i++) {
#pragma unroll
        for (int j = 0; j < 8; j++) sums[i][j] += mine[i] * others[j];
      }
    }
  }
#pragma unroll
  for (int i = 0; i < 8; i++) {
    const int at = row + i / 4 * 64 + down + i % 4;
#pragma unroll
    for (int half = 0; half < 2; half++) {
      *reinterpret_cast<float4*>(product + size_t(at) * kColumns + column + 64 * half + across) =
          make_float4(sums[i][4 * half], sums[i][4 * half + 1], sums[i][4 * half + 2], sums[i][4 * half + 3]);
    }
  }
}

__global__ void fillMatricesKernel(float* left, float* right) {
  const size_t begin = blockIdx.x * size_t(blockDim.x) + threadIdx.x, stride = size_t(gridDim.x) * blockDim.x;
  for (size_t i = begin; i < size_t(kRows) * kDepth; i += stride) left[i] = leftElement(i / kDepth, i % kDepth);
  for (size_t i = begin; i < size_t(kDepth) * kColumns; i += stride)
    right[i] = rightElement(i / kColumns, i % kColumns);
}

__global__ void checkProductKernel(const float* product, unsigned long long* wrong) {
  const size_t begin = blockIdx.x * size_t(blockDim.x) + threadIdx.x, stride = size_t(gridDim.x) * blockDim.x;
  for (size_t i = begin; i < size_t(kRows) * kColumns; i += stride) {
    int expected = 0;
    for (int k = 0; k < kDepth; k++) expected += leftElement(i / kColumns, k) * rightElement(k, i % kColumns);
    if (product[i] != float(expected)) atomicAdd(wrong, 1);
  }
}

__global__ void fillGradientsKernel(float* gradients, size_t count, int rank) {
  const size_t begin = blockIdx.x * size_t(blockDim.x) + threadIdx.x, stride = size_t(gridDim.x) * blockDim.x;
  for (size_t i = begin; i < count; i += stride) gradients[i] = float(gradient(i, rank));
}

__global__ void checkSumsKernel(const float* sums, size_t count, int ranks, unsigned long long* wrong) {
  const size_t begin = blockIdx.x * size_t(blockDim.x) + threadIdx.x, stride = size_t(gridDim.x) * blockDim.x;
  for (size_t i = begin; i < count; i += stride) {
    int expected = 0;
    for (int rank = 0; rank < ranks; rank++) expected += gradient(i, rank);
    if (sums[i] != float(expected)) atomicAdd(wrong, 1);
  }
}

constexpr int kBlocks = 1024; /* of the kernels whose time does not matter */

}  // namespace

cudaError_t fillMatrices(float* left, float* right, cudaStream_t stream) {
  fillMatricesKernel<<<kBlocks, 256, 0, stream>>>(left, right);
  return cudaGetLastError();
}

cudaError_t multiply(const float* left, const float* right, float* product, cudaStream_t stream) {
  multiplyKernel<<<dim3(kColumns / kTile, kRows / kTile), kThreads, 0, stream>>>(left, right, product);
  return cudaGetLastError();
}

cudaError_t checkProduct(const float* product, unsigned long long* wrong, cudaStream_t stream) {
  checkProductKernel<<<kBlocks, 256, 0, stream>>>(product, wrong);
  return cudaGetLastError();
}

cudaError_t fillGradients(float* gradients, size_t count, int rank, cudaStream_t stream) {
  fillGradientsKernel<<<kBlocks, 256, 0, stream>>>(gradients, count, rank);
  return cudaGetLastError();
}

cudaError_t checkSums(const float* sums, size_t count, int ranks, unsigned long long* wrong, cudaStream_t stream) {
  checkSumsKernel<<<kBlocks, 256, 0, stream>>>(sums, count, ranks, wrong);
  return cudaGetLastError();
}
