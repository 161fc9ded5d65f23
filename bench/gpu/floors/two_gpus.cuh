// Two GPUs of one process that reach each other's memory, and what an operation between them takes in a replayed graph.
#pragma once
#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "must.cuh"

inline constexpr size_t kBuffer = 400ull << 20, kWords = 1 << 20;
inline constexpr int kOperations = 20, kRounds = 9, kWarmUps = 2;

struct Side {
  cudaStream_t stream, line;
  cudaEvent_t forked, joined, begun, ended;
  char *send, *receive;
  uint32_t* words;  // in the GPU's memory, zero
};
inline Side sides[2];

__device__ inline void tell(uint32_t* word, uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}
__device__ inline void await(const uint32_t* word, uint32_t value) {
  uint32_t seen;
  do {
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(word) : "memory");
  } while (int32_t(seen - value) < 0);
}
// Words first, first + step, … below end, eight of them under way at once.
__device__ inline void copyWords(const uint4* from, uint4* to, size_t first, size_t step, size_t end) {
  constexpr int kUnroll = 8;
  for (size_t i = first; i < end; i += kUnroll * step) {
    uint4 loaded[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; u++) {
      if (i + u * step < end) loaded[u] = from[i + u * step];
    }
#pragma unroll
    for (int u = 0; u < kUnroll; u++) {
      if (i + u * step < end) to[i + u * step] = loaded[u];
    }
  }
}
// `mine[8]` counts the meetings.
__global__ void meet(uint32_t* mine, uint32_t* theirs) {
  if (threadIdx.x > 0) return;
  const uint32_t number = ++mine[8];
  tell(theirs, number);
  await(mine, number);
}
inline void meetOn(int side, size_t at) { meet<<<1, 32, 0, sides[side].stream>>>(sides[side].words + at, sides[1 - side].words + at); }

inline void setUp() {
  for (int side = 0; side < 2; side++) {
    Side& one = sides[side];
    MUST(cudaSetDevice(side));
    MUST(cudaDeviceEnablePeerAccess(1 - side, 0));
    for (cudaStream_t* stream : {&one.stream, &one.line})
      MUST(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
    for (cudaEvent_t* event : {&one.forked, &one.joined})
      MUST(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    for (cudaEvent_t* event : {&one.begun, &one.ended}) MUST(cudaEventCreate(event));
    MUST(cudaMalloc(&one.send, kBuffer));
    MUST(cudaMalloc(&one.receive, kBuffer));
    MUST(cudaMalloc(&one.words, kWords * sizeof(uint32_t)));
    MUST(cudaMemset(one.words, 0, kWords * sizeof(uint32_t)));
    MUST(cudaDeviceSynchronize());
  }
}

// Microseconds of one, on the slower GPU; the median. operation(side): on the side's stream. Eager: the calling thread
// serves both GPUs in turn, so this says little of what takes less than its calls.
template <class Operation>
double measure(Operation&& operation, bool eager = false) {
  cudaGraphExec_t graphs[2]{};
  for (int side = 0; side < 2 && !eager; side++) {
    cudaGraph_t graph;
    MUST(cudaSetDevice(side));
    MUST(cudaStreamBeginCapture(sides[side].stream, cudaStreamCaptureModeRelaxed));
    for (int i = 0; i < kOperations; i++) operation(side);
    MUST(cudaStreamEndCapture(sides[side].stream, &graph));
    MUST(cudaGraphInstantiate(&graphs[side], graph, 0));
    MUST(cudaGraphDestroy(graph));
  }
  std::vector<double> times;
  for (int round = 0; round < kRounds; round++) {
    for (int side = 0; side < 2; side++) {
      MUST(cudaSetDevice(side));
      meetOn(side, kWords / 2);
      MUST(cudaEventRecord(sides[side].begun, sides[side].stream));
      if (!eager) MUST(cudaGraphLaunch(graphs[side], sides[side].stream));
    }
    for (int i = 0; i < kOperations * 2 && eager; i++) {
      MUST(cudaSetDevice(i % 2));
      operation(i % 2);
    }
    for (int side = 0; side < 2; side++) {
      MUST(cudaSetDevice(side));
      MUST(cudaEventRecord(sides[side].ended, sides[side].stream));
    }
    float longest = 0;
    for (const Side& side : sides) {
      float milliseconds;
      MUST(cudaEventSynchronize(side.ended));
      MUST(cudaEventElapsedTime(&milliseconds, side.begun, side.ended));
      longest = std::max(longest, milliseconds);
    }
    if (round >= kWarmUps) times.push_back(longest * 1000 / kOperations);
  }
  for (cudaGraphExec_t graph : graphs) {
    if (graph != nullptr) MUST(cudaGraphExecDestroy(graph));
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// time(bytes, both): of so many bytes from the first GPU to the second, and, if both, also the other way.
template <class Time>
void rowOf(const char* name, std::initializer_list<size_t> sizes, std::initializer_list<bool> ways, Time&& time) {
  std::printf("%-52s", name);
  for (const bool both : ways) {
    for (const size_t bytes : sizes) std::printf(" %8.2f", time(bytes, both));
  }
  std::printf("\n");
  std::fflush(stdout);
}
template <class Time>
void row(const char* name, std::initializer_list<size_t> sizes, Time&& time) {
  rowOf(name, sizes, {true, false}, time);
}
