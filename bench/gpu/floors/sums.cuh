// Adding what comes from a peer to one's own floats: what the programs of that have in common.
#pragma once
#include "two_gpus.cuh"

inline constexpr int kThreads = 512;

struct Sum {
  const char *own, *theirs;  // theirs: where this GPU reads it, its own memory or the peer's
  const char* sent;          // what goes to the peer
  char *target, *out;
  size_t bytes;  // of each
};

__device__ inline uint4 sum(uint4 a, uint4 b) {
  const auto add = [](uint32_t x, uint32_t y) { return __float_as_uint(__uint_as_float(x) + __uint_as_float(y)); };
  return {add(a.x, b.x), add(a.y, b.y), add(a.z, b.z), add(a.w, b.w)};
}

// Threads [0, threads) add `bytes`, with kUnroll loads of each kind under way. theirs repeats after `period` bytes.
template <int kUnroll>
__device__ void addAll(const char* own, const char* theirs, char* out, size_t bytes, uint32_t threads, size_t period) {
  for (size_t at = threadIdx.x * 16; at < bytes; at += size_t(kUnroll) * threads * 16) {
    uint4 a[kUnroll]{}, b[kUnroll]{};
#pragma unroll
    for (int u = 0; u < kUnroll; u++) {
      if (const size_t i = at + size_t(u) * threads * 16; i < bytes) {
        a[u] = *reinterpret_cast<const uint4*>(own + i);
        b[u] = *reinterpret_cast<const uint4*>(theirs + i % period);
      }
    }
#pragma unroll
    for (int u = 0; u < kUnroll; u++) {
      if (const size_t i = at + size_t(u) * threads * 16; i < bytes) *reinterpret_cast<uint4*>(out + i) = sum(a[u], b[u]);
    }
  }
}

__global__ void fill(float* floats, size_t count, float first) {
  for (size_t i = threadIdx.x + size_t(blockIdx.x) * blockDim.x; i < count; i += size_t(gridDim.x) * blockDim.x)
    floats[i] = first + float(i % 1024);
}
__global__ void countWrong(const float* sums, size_t count, uint32_t* wrong) {
  for (size_t i = threadIdx.x + size_t(blockIdx.x) * blockDim.x; i < count; i += size_t(gridDim.x) * blockDim.x) {
    if (sums[i] != 3 + 2 * float(i % 1024)) atomicAdd(wrong, 1);
  }
}
// Of the sums of both GPUs, which are zero then.
inline void check(const char* name, size_t bytes) {
  for (int side = 0; side < 2; side++) {
    uint32_t wrong = 0;
    MUST(cudaSetDevice(side));
    countWrong<<<256, 256>>>(reinterpret_cast<float*>(sides[side].receive), bytes / 4, sides[side].words + 4096);
    MUST(cudaMemcpy(&wrong, sides[side].words + 4096, 4, cudaMemcpyDeviceToHost));
    MUST(cudaMemset(sides[side].words + 4096, 0, 4));
    MUST(cudaMemset(sides[side].receive, 0, bytes));
    if (wrong > 0) std::printf("%s: %u sums of GPU %d are wrong\n", name, wrong, side);
  }
}

// Floats that differ between the GPUs, all of which check() knows the sums of.
inline void fillAll() {
  for (int side = 0; side < 2; side++) {
    MUST(cudaSetDevice(side));
    fill<<<256, 256>>>(reinterpret_cast<float*>(sides[side].send), kBuffer / 4, 1 + side);
    MUST(cudaDeviceSynchronize());
  }
}
