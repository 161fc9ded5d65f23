#include "device.h"

#include <cuda.h>

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

__global__ void __launch_bounds__(512) storeKernel(uint4* to, const uint4* from, size_t count) {
  constexpr int kUnroll = 8;
  const size_t stride = size_t(gridDim.x) * blockDim.x;
  size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
  for (; i + (kUnroll - 1) * stride < count; i += kUnroll * stride) {
    uint4 pieces[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; u++) pieces[u] = from[i + u * stride];
#pragma unroll
    for (int u = 0; u < kUnroll; u++) to[i + u * stride] = pieces[u];
  }
  for (; i < count; i += stride) to[i] = from[i];
}

__global__ void nothingKernel() {}

struct Parameters {
  char bytes[PARAMETER_BYTES];
};
__global__ void parametersKernel(Parameters) {}

// One block, as the driver launches it: without what the runtime does before.
template <auto* kernel>
cudaError_t launchByDriver(void** parameters, cudaStream_t stream) {
  static decltype(&cuLaunchKernel) launch = nullptr;
  static cudaFunction_t function;
  if (launch == nullptr) {
    cudaDriverEntryPointQueryResult found;
    cudaError_t state = cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(kernel));
    if (state == cudaSuccess)
      state = cudaGetDriverEntryPointByVersion("cuLaunchKernel", reinterpret_cast<void**>(&launch), 12000,
                                               cudaEnableDefault, &found);
    if (state != cudaSuccess) return state;
  }
  const CUresult result = launch(function, 1, 1, 1, 32, 1, 1, 0, stream, parameters, nullptr);
  return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorLaunchFailure;
}

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

cudaError_t store(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  storeKernel<<<64, 512, 0, stream>>>(static_cast<uint4*>(to), static_cast<const uint4*>(from), bytes / sizeof(uint4));
  return cudaGetLastError();
}

cudaError_t nothing(cudaStream_t stream) {
  nothingKernel<<<1, 32, 0, stream>>>();
  return cudaGetLastError();
}

cudaError_t nothing_by_driver(cudaStream_t stream) {
  return launchByDriver<nothingKernel>(nullptr, stream);
}

cudaError_t nothing_with_parameters(cudaStream_t stream) {
  static Parameters parameters;
  void* all[] = {&parameters};
  return launchByDriver<parametersKernel>(all, stream);
}
