// Measures what it costs a kernel to tell host memory when it begins and when it ends, as the flight recorder does: one
// thread stores eight bytes over PCI Express. Kernels that copy a MiB in GPU memory follow one another in a replayed
// graph, with stamps of several kinds in turns.
//   nvcc -O3 -std=c++20 -arch=sm_90 -o stamps stamps.cu && ./stamps [ROUNDS]
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <utility>
#include <vector>

#include "must.cuh"

namespace {

constexpr int kKernels = 200;
constexpr int kThreads = 512;

enum class Stamps { none, clocks, begin, end, both, onGpu, sameThread, after, bulk, count };
constexpr const char* kNames[] = {
    "no stamps",
    "the clock is read twice, nothing is stored",
    "the beginning to host memory",
    "the end to host memory",
    "both to host memory",
    "both to GPU memory",
    "both to host memory, by the thread that signals",
    "the same, the beginning after the signal",
    "both to host memory, the beginning by a bulk copy",
};
static_assert(std::size(kNames) == static_cast<size_t>(Stamps::count));

struct Places {
  volatile uint64_t* host;
  volatile uint64_t* gpu;
};

__device__ uint64_t now() {
  uint64_t value;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value));
  return value;
}

__device__ void signal(volatile uint64_t* to, uint64_t value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(const_cast<uint64_t*>(to)), "l"(value) : "memory");
}

// `signals`: each block begins with a signal to the system, as kernels do that use other GPUs' memory: what the block has
// stored before is to be seen before it.
template <Stamps kind, bool signals>
__global__ void work(const uint4* from, uint4* to, size_t words, Places places) {
  constexpr bool byFirst = kind == Stamps::sameThread || kind == Stamps::after;
  const bool stamps = blockIdx.x == 0 && threadIdx.x == (byFirst ? 0 : kThreads - 1);
  if (stamps) {
    if constexpr (kind == Stamps::clocks || kind == Stamps::onGpu) places.gpu[0] = now();
    if constexpr (kind == Stamps::begin || kind == Stamps::both || kind == Stamps::sameThread) places.host[0] = now();
    if constexpr (kind == Stamps::bulk) {
      __shared__ alignas(16) uint64_t stamp[2];
      stamp[0] = now();
      stamp[1] = 0;
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 16;" ::"l"(const_cast<uint64_t*>(places.host)),
                   "r"(static_cast<uint32_t>(__cvta_generic_to_shared(stamp)))
                   : "memory");
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    }
  }
  if constexpr (signals) {
    __syncthreads();
    if (threadIdx.x == 0) signal(places.gpu + 16 + blockIdx.x, 1);
    __syncthreads();
  }
  if (stamps && kind == Stamps::after) places.host[0] = now();
  for (size_t i = blockIdx.x * kThreads + threadIdx.x; i < words; i += gridDim.x * kThreads) to[i] = from[i];
  __syncthreads();
  if (stamps) {
    if constexpr (kind == Stamps::clocks || kind == Stamps::onGpu) places.gpu[1] = now();
    if constexpr (kind >= Stamps::end && kind != Stamps::onGpu) places.host[1] = now();
    if constexpr (kind == Stamps::bulk) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
  }
}

using Kernel = void (*)(const uint4*, uint4*, size_t, Places);
template <bool signals, size_t... kinds>
std::vector<Kernel> kernelsOf(std::index_sequence<kinds...>) {
  return {work<static_cast<Stamps>(kinds), signals>...};
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 31;
  cudaStream_t stream;
  cudaEvent_t begin, end;
  Places places{};
  void *host, *gpu, *from, *to;
  MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  MUST(cudaEventCreate(&begin));
  MUST(cudaEventCreate(&end));
  MUST(cudaHostAlloc(&host, 4096, cudaHostAllocMapped));
  MUST(cudaMalloc(&gpu, 4096));
  MUST(cudaMalloc(&from, 1 << 20));
  MUST(cudaMalloc(&to, 1 << 20));
  MUST(cudaMemset(gpu, 0, 4096));
  places.host = static_cast<uint64_t*>(host);
  places.gpu = static_cast<uint64_t*>(gpu);
  constexpr auto kinds = std::make_index_sequence<static_cast<size_t>(Stamps::count)>();
  for (const bool signals : {false, true}) {
    for (const size_t bytes : {size_t{4} << 10, size_t{64} << 10, size_t{1} << 20}) {
      const int blocks = static_cast<int>(std::min<size_t>(16, std::max<size_t>(1, bytes >> 14)));
      std::vector<cudaGraphExec_t> graphs;
      for (const Kernel kernel : signals ? kernelsOf<true>(kinds) : kernelsOf<false>(kinds)) {
        cudaGraph_t graph;
        MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        for (int i = 0; i < kKernels; i++)
          kernel<<<blocks, kThreads, 0, stream>>>(static_cast<uint4*>(from), static_cast<uint4*>(to),
                                                  bytes / sizeof(uint4), places);
        MUST(cudaStreamEndCapture(stream, &graph));
        MUST(cudaGraphInstantiate(&graphs.emplace_back(), graph, 0));
      }
      std::vector<std::vector<double>> times(graphs.size());
      for (int round = -1; round < rounds; round++) {
        for (size_t kind = 0; kind < graphs.size(); kind++) {
          float milliseconds = 0;
          MUST(cudaEventRecord(begin, stream));
          MUST(cudaGraphLaunch(graphs[kind], stream));
          MUST(cudaEventRecord(end, stream));
          MUST(cudaEventSynchronize(end));
          MUST(cudaEventElapsedTime(&milliseconds, begin, end));
          if (round >= 0) times[kind].push_back(milliseconds * 1e3 / kKernels);
        }
      }
      std::printf("%zu B by %d blocks%s\n", bytes, blocks, signals ? ", each with a signal" : "");
      for (size_t kind = 0; kind < graphs.size(); kind++) {
        std::sort(times[kind].begin(), times[kind].end());
        std::printf("  %-50s %6.3f us\n", kNames[kind], times[kind][times[kind].size() / 2]);
      }
    }
  }
}
