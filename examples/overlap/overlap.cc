/*
 * What training does: the sum of gradients over all GPUs runs while the next product of matrices is computed. Prints
 * the time of an all-reduce alone, of as many products as take about as long alone, and of both at once, on two streams
 * that events join. Sums and products are checked element by element.
 *
 *     nvcc -O3 -std=c++20 -arch=sm_90 -I native/include examples/overlap/*.cu examples/overlap/*.cc -o overlap \
 *       -L build -Xlinker -l:libnccl.so.2
 *     ncclrun -n 2 --engine ncclrun ./overlap [MEBIBYTES [ROUNDS]]
 *
 * It calls nothing but nccl.h, so it runs on NVIDIA's library too: LD_LIBRARY_PATH=… ncclrun -n 2 ./overlap
 */
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "nccl.h"
#include "product.h"
#include "ranks.h"

#define CUDA(CALL)                                                               \
  do {                                                                           \
    const cudaError_t error_ = (CALL);                                           \
    if (error_ != cudaSuccess) end("%s: %s", #CALL, cudaGetErrorString(error_)); \
  } while (0)
#define NCCL(CALL) check(CALL, #CALL)

namespace {

constexpr int kSms = 16; /* that the all-reduce may have */

/* Which of the two runs. */
struct Work {
  bool sums;
  int products;
};

class Bench {
 public:
  Bench(const Ranks& ranks, size_t count) : ranks_(ranks), count_(count) {
    CUDA(cudaSetDevice(ranks.gpu));
    /* The all-reduce needs few SMs, and needs them at once: they go to it as soon as a block of the product
     * has ended, not after all of them. */
    int least, greatest;
    CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    CUDA(cudaStreamCreateWithPriority(&exchange_, cudaStreamNonBlocking, greatest));
    CUDA(cudaStreamCreateWithPriority(&compute_, cudaStreamNonBlocking, least));
    for (cudaEvent_t* event : {&begun_, &computed_, &ended_}) CUDA(cudaEventCreate(event));
    allocate(gradients_, count);
    allocate(sums_, count);
    allocate(left_, size_t{kRows} * kDepth);
    allocate(right_, size_t{kDepth} * kColumns);
    allocate(product_, size_t{kRows} * kColumns);
    allocate(together_, 1);
    allocate(wrong_, 1);
    /* An all-reduce by itself would take half of the GPU's SMs, and the products have the other half then.
     * With few it takes a little longer and costs them little; NCCL_MAX_CTAS tries other numbers. */
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.maxCTAs = kSms;
    NCCL(ncclCommInitRankConfig(&comm_, ranks.size, shareUniqueId(ranks), ranks.rank, &config));
    CUDA(fillGradients(gradients_, count, ranks.rank, exchange_));
    CUDA(fillMatrices(left_, right_, exchange_));
    CUDA(cudaStreamSynchronize(exchange_));
  }
  ~Bench() { ncclCommDestroy(comm_); }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  /* Milliseconds from the moment at which all ranks are there to the end of both streams, on the slowest rank. */
  float once(Work work) {
    float milliseconds;
    meet();
    CUDA(cudaEventRecord(begun_, exchange_));
    CUDA(cudaStreamWaitEvent(compute_, begun_, 0));
    if (work.sums) NCCL(ncclAllReduce(gradients_, sums_, count_, ncclFloat, ncclSum, comm_, exchange_));
    for (int i = 0; i < work.products; i++) CUDA(multiply(left_, right_, product_, compute_));
    CUDA(cudaEventRecord(computed_, compute_));
    CUDA(cudaStreamWaitEvent(exchange_, computed_, 0));
    CUDA(cudaEventRecord(ended_, exchange_));
    CUDA(cudaStreamSynchronize(exchange_));
    CUDA(cudaEventElapsedTime(&milliseconds, begun_, ended_));
    return largest(milliseconds);
  }

  float median(Work work, int rounds) {
    std::vector<float> times;
    for (int i = 0; i < rounds; i++) times.push_back(once(work));
    std::ranges::nth_element(times, times.begin() + rounds / 2);
    return times[rounds / 2];
  }

  /* So that no result of an earlier round can be taken for one of a later. */
  void clear() {
    CUDA(cudaMemsetAsync(sums_, 0xff, count_ * sizeof(float), exchange_));
    CUDA(cudaMemsetAsync(product_, 0xff, size_t{kRows} * kColumns * sizeof(float), exchange_));
    CUDA(cudaStreamSynchronize(exchange_));
  }

  /* Elements of either result that are not what they must be, on all ranks; so many that a float counts them. */
  float wrong() {
    unsigned long long here = 0;
    CUDA(cudaMemsetAsync(wrong_, 0, sizeof *wrong_, exchange_));
    CUDA(checkSums(sums_, count_, ranks_.size, wrong_, exchange_));
    CUDA(checkProduct(product_, wrong_, exchange_));
    CUDA(cudaMemcpyAsync(&here, wrong_, sizeof here, cudaMemcpyDefault, exchange_));
    CUDA(cudaStreamSynchronize(exchange_));
    return combined(static_cast<float>(here), ncclSum);
  }

 private:
  template <typename Element>
  static void allocate(Element*& memory, size_t count) {
    CUDA(cudaMalloc(reinterpret_cast<void**>(&memory), count * sizeof(Element)));
  }

  /* On the stream: what follows begins on all ranks at about the same time. */
  void meet() { NCCL(ncclAllReduce(together_, together_, 1, ncclFloat, ncclMax, comm_, exchange_)); }

  float largest(float mine) { return combined(mine, ncclMax); }
  float combined(float mine, ncclRedOp_t op) {
    CUDA(cudaMemcpyAsync(together_, &mine, sizeof mine, cudaMemcpyDefault, exchange_));
    NCCL(ncclAllReduce(together_, together_, 1, ncclFloat, op, comm_, exchange_));
    CUDA(cudaMemcpyAsync(&mine, together_, sizeof mine, cudaMemcpyDefault, exchange_));
    CUDA(cudaStreamSynchronize(exchange_));
    return mine;
  }

  const Ranks ranks_;
  const size_t count_;
  cudaStream_t exchange_, compute_;
  cudaEvent_t begun_, computed_, ended_;
  float *gradients_, *sums_, *left_, *right_, *product_, *together_;
  unsigned long long* wrong_;
  ncclComm_t comm_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  const int mebibytes = argc > 1 ? std::atoi(argv[1]) : 512;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 15;
  if (mebibytes < 1 || rounds < 1) end("usage: overlap [MEBIBYTES [ROUNDS]], whole numbers from 1");
  const Ranks ranks = findRanks();
  Bench bench(ranks, (size_t{1} << 20) / sizeof(float) * mebibytes);

  for (int i = 0; i < 3; i++) bench.once({.sums = true, .products = 8}); /* clocks, caches and connections get warm */
  const float sums = bench.median({.sums = true, .products = 0}, rounds);
  const int products = std::max(1, static_cast<int>(std::lround(sums / bench.median({false, 8}, rounds) * 8)));
  const float computing = bench.median({.sums = false, .products = products}, rounds);
  bench.clear();
  const float both = bench.median({.sums = true, .products = products}, rounds);
  const float wrong = bench.wrong();

  if (ranks.rank == 0) {
    const double operations = 2.0 * kRows * kColumns * kDepth * products;
    std::printf("%d GPUs, medians of %d rounds on the slowest\n", ranks.size, rounds);
    std::printf("all_reduce of %d MiB alone     %7.3f ms\n", mebibytes, sums);
    std::printf("%3d products of matrices alone  %7.3f ms  (%.1f TFLOP/s)\n", products, computing,
                operations / computing / 1e9);
    std::printf("both together                   %7.3f ms\n", both);
    std::printf("together / the longer alone     %7.3f\n", both / std::max(sums, computing));
    if (wrong == 0)
      std::printf("every element is right\n");
    else
      std::printf("%.0f elements are wrong\n", wrong);
  }
  return wrong == 0 ? 0 : 1;
}
