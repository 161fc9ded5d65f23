// Runs the engine's all-reduce sources as kernels on two GPUs of one process, driven by a HostPlan in its final
// encoding.
//
//   all_reduce_two_gpus PLAN     PLAN: a HostPlan of 2 ranks on one host (two-gpu-plan.ts writes one)
//
// Rank r uses GPU r; with a single GPU both ranks share it. For each size the form is the plan's first for that size,
// then each algorithm is forced in turn. Results are compared exactly with a computation on the host; the connections'
// byte counters with each other. Prints a line per case with time and bus bandwidth, then PASS or FAIL, and exits with
// 0 or 1.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <vector>

#include "core/plan_view.h"
#include "device/cuda/kernels.cuh"

NCCLRUN_ALL_REDUCE_KERNELS(Sum, Float, float)

namespace {

using ncclrun::PlanView;
using ncclrun::Work;
using ncclrun::cuda::Endpoint;
using ncclrun::cuda::Launch;
using ncclrun::plan::Algorithm;
using ncclrun::plan::FormRecord;
using Kernel = void (*)(const Launch);

constexpr uint32_t kRanks = 2;

void check(cudaError_t error, const char* what, int line) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "all_reduce_two_gpus.cu:%d: %s: %s\n", line, what, cudaGetErrorString(error));
  printf("FAIL\n");
  exit(1);
}
#define CHECK(call) check(call, #call, __LINE__)

// Memory of one GPU, zeroed; lives until the process ends.
template <class T>
T* onDevice(int device, size_t count) {
  CHECK(cudaSetDevice(device));
  T* memory = nullptr;
  CHECK(cudaMalloc(&memory, count * sizeof(T)));
  CHECK(cudaMemset(memory, 0, count * sizeof(T)));
  return memory;
}

// The ends of all blocks of one rank, as a Launch wants them: block by block, receives then sends.
struct Ends {
  std::vector<Endpoint> host;
  Endpoint* device = nullptr;
};

class TwoGpus {
 public:
  explicit TwoGpus(const PlanView& plan) : plan_(plan) {
    int devices = 0;
    CHECK(cudaGetDeviceCount(&devices));
    for (uint32_t rank = 0; rank < kRanks; rank++) deviceOf_[rank] = devices > 1 ? int(rank) : 0;
    for (uint32_t rank = 0; rank < kRanks; rank++) {
      CHECK(cudaSetDevice(deviceOf_[rank]));
      if (devices > 1) CHECK(cudaDeviceEnablePeerAccess(deviceOf_[1 - rank], 0));
      CHECK(cudaStreamCreateWithFlags(&streams_[rank], cudaStreamNonBlocking));
      for (auto& event : events_[rank]) CHECK(cudaEventCreate(&event));
    }
    CHECK(cudaHostAlloc(&abort_, sizeof *abort_, cudaHostAllocPortable | cudaHostAllocMapped));
    *abort_ = 0;
    const auto& header = plan.header();
    connect(rings_, header.ringSteps, header.ringStepBytes);
    connect(pairs_, header.pairSteps, header.pairStepBytes);
    for (uint32_t rank = 0; rank < kRanks; rank++) {
      std::vector<uint32_t> table;
      for (uint32_t channel = 0; channel < header.channels; channel++) {
        for (uint32_t place = 0; place < kRanks; place++) table.push_back(plan.ring(channel, place));
      }
      ringTables_[rank] = onDevice<uint32_t>(deviceOf_[rank], table.size());
      CHECK(cudaMemcpy(ringTables_[rank], table.data(), table.size() * sizeof(uint32_t), cudaMemcpyHostToDevice));
    }
  }

  int device(uint32_t rank) const { return deviceOf_[rank]; }

  // One all-reduce on both GPUs, not waited for.
  void launch(const FormRecord& form, float* const send[], float* const receive[], size_t count) {
    const bool ring = form.algorithm == uint8_t(Algorithm::ring);
    const Kernel kernel = ring                                                  ? ncclrunAllReduceRingSumFloat
                          : form.algorithm == uint8_t(Algorithm::directOneShot) ? ncclrunAllReduceDirectOneShotSumFloat
                                                                                : ncclrunAllReduceDirectTwoShotSumFloat;
    for (uint32_t rank = 0; rank < kRanks; rank++) {
      Launch launch{};
      Work& work = launch.work;
      work.send = reinterpret_cast<const char*>(send[rank]);
      work.receive = reinterpret_cast<char*>(receive[rank]);
      work.count = count;
      work.elementBytes = sizeof(float);
      work.chunk = std::max<size_t>(form.chunkBytes / sizeof(float), 1);
      work.grain = (form.threads - 32) * size_t(8) / sizeof(float);
      work.rank = rank;
      work.ranks = kRanks;
      launch.ends = (ring ? rings_ : pairs_)[rank].device;
      launch.receives = launch.sends = 1;
      launch.rings = ringTables_[rank];
      launch.abort = abort_;
      CHECK(cudaSetDevice(deviceOf_[rank]));
      kernel<<<form.channels, std::min(form.threads, 512u), 0, streams_[rank]>>>(launch);
      CHECK(cudaGetLastError());
    }
  }

  void wait() {
    for (uint32_t rank = 0; rank < kRanks; rank++) CHECK(cudaStreamSynchronize(streams_[rank]));
  }

  // Microseconds of one of `rounds` launches, on rank 0's clock.
  double time(const FormRecord& form, float* const send[], float* const receive[], size_t count, int rounds) {
    CHECK(cudaEventRecord(events_[0][0], streams_[0]));
    for (int i = 0; i < rounds; i++) launch(form, send, receive, count);
    CHECK(cudaSetDevice(deviceOf_[0]));
    CHECK(cudaEventRecord(events_[0][1], streams_[0]));
    wait();
    float milliseconds = 0;
    CHECK(cudaEventElapsedTime(&milliseconds, events_[0][0], events_[0][1]));
    return milliseconds * 1e3 / rounds;
  }

  // What rank 0 sent is what rank 1 received, and the other way, on every connection. The bytes that rank 0 has sent so
  // far.
  bool countersAgree(uint64_t& sent) {
    sent = 0;
    bool agree = true;
    for (Ends* ends : {rings_, pairs_}) {
      for (uint32_t rank = 0; rank < kRanks; rank++) {
        CHECK(cudaMemcpy(ends[rank].host.data(), ends[rank].device, ends[rank].host.size() * sizeof(Endpoint),
                         cudaMemcpyDeviceToHost));
      }
      for (size_t i = 0; i < ends[0].host.size(); i += 2) {
        agree = agree && ends[0].host[i].bytes == ends[1].host[i + 1].bytes &&
                ends[1].host[i].bytes == ends[0].host[i + 1].bytes;
        sent += ends[0].host[i + 1].bytes;
      }
    }
    return agree;
  }

 private:
  // A connection each way for every channel. Slots and tail in the receiver's memory, head in the sender's.
  void connect(Ends ends[], uint32_t steps, uint32_t stepBytes) {
    const uint32_t channels = plan_.header().channels;
    for (uint32_t rank = 0; rank < kRanks; rank++) ends[rank].host.resize(size_t(channels) * 2);
    for (uint32_t channel = 0; channel < channels; channel++) {
      for (uint32_t sender = 0; sender < kRanks; sender++) {
        const uint32_t receiver = 1 - sender;
        Endpoint end{};
        end.slots = onDevice<char>(deviceOf_[receiver], size_t(steps) * stepBytes);
        end.tail = onDevice<uint64_t>(deviceOf_[receiver], 16);
        end.head = onDevice<uint64_t>(deviceOf_[sender], 16);
        end.steps = steps;
        end.stepBytes = stepBytes;
        ends[receiver].host[channel * 2] = end;
        ends[sender].host[channel * 2 + 1] = end;
      }
    }
    for (uint32_t rank = 0; rank < kRanks; rank++) {
      ends[rank].device = onDevice<Endpoint>(deviceOf_[rank], ends[rank].host.size());
      CHECK(cudaMemcpy(ends[rank].device, ends[rank].host.data(), ends[rank].host.size() * sizeof(Endpoint),
                       cudaMemcpyHostToDevice));
    }
  }

  const PlanView& plan_;
  int deviceOf_[kRanks];
  cudaStream_t streams_[kRanks];
  cudaEvent_t events_[kRanks][2];
  uint32_t* abort_ = nullptr;
  Ends rings_[kRanks], pairs_[kRanks];
  uint32_t* ringTables_[kRanks];
};

// The plan's first form for an all-reduce of so many bytes.
FormRecord formFor(const PlanView& plan, uint64_t bytes) {
  for (uint32_t i = 0; i < plan.header().tuningTable.count; i++) {
    const auto row = plan.tuning(i);
    if (row.collective == uint8_t(ncclrun::plan::Collective::allReduce) && bytes <= row.upToBytes)
      return plan.form(row.firstForm);
  }
  fprintf(stderr, "the plan has no form for an all-reduce of %llu bytes\n", (unsigned long long)bytes);
  exit(1);
}

// Small whole numbers: the sum is exact.
float valueOf(uint32_t rank, size_t i) { return float(int(i % 8191) + int(rank) * 3); }

class Cases {
 public:
  Cases(TwoGpus& gpus, size_t largest) : gpus_(gpus), input_(largest), output_(largest) {
    for (uint32_t rank = 0; rank < kRanks; rank++) {
      send_[rank] = onDevice<float>(gpus.device(rank), largest);
      receive_[rank] = onDevice<float>(gpus.device(rank), largest);
    }
  }

  bool run(const char* how, const FormRecord& form, size_t count) {
    size_t wrong = 0;
    for (bool inPlace : {false, true}) wrong += once(form, count, inPlace);
    const size_t bytes = count * sizeof(float);
    const double microseconds = gpus_.time(form, send_, receive_, count, bytes > (64u << 20) ? 10 : 50);
    // Bus bandwidth of an all-reduce: 2(n-1)/n of the bytes over the time; 1 for two ranks.
    printf("%-8s algorithm %u channels %2u threads %3u chunk %8llu  %12zu bytes  %10.2f us  %8.2f GB/s  wrong %zu\n",
           how, form.algorithm, form.channels, form.threads, (unsigned long long)form.chunkBytes, bytes, microseconds,
           double(bytes) / microseconds / 1e3, wrong);
    fflush(stdout);
    return wrong == 0;
  }

 private:
  size_t once(const FormRecord& form, size_t count, bool inPlace) {
    float** const target = inPlace ? send_ : receive_;
    for (uint32_t rank = 0; rank < kRanks; rank++) {
      for (size_t i = 0; i < count; i++) input_[i] = valueOf(rank, i);
      CHECK(cudaMemcpy(send_[rank], input_.data(), count * sizeof(float), cudaMemcpyHostToDevice));
      if (!inPlace) CHECK(cudaMemset(receive_[rank], 0xff, count * sizeof(float)));
    }
    CHECK(cudaDeviceSynchronize());
    gpus_.launch(form, send_, target, count);
    gpus_.wait();
    size_t wrong = 0;
    for (uint32_t rank = 0; rank < kRanks; rank++) {
      CHECK(cudaMemcpy(output_.data(), target[rank], count * sizeof(float), cudaMemcpyDeviceToHost));
      for (size_t i = 0; i < count; i++) wrong += output_[i] != valueOf(0, i) + valueOf(1, i);
    }
    return wrong;
  }

  TwoGpus& gpus_;
  std::vector<float> input_, output_;
  float* send_[kRanks];
  float* receive_[kRanks];
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: all_reduce_two_gpus PLAN\n");
    return 2;
  }
  std::ifstream file(argv[1], std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  PlanView plan;
  if (const auto status = plan.open({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}); !status.ok()) {
    fprintf(stderr, "%s: %s\nFAIL\n", argv[1], status.sentence.c_str());
    return 1;
  }
  const auto& header = plan.header();
  if (header.ranks != kRanks || header.localRanks != kRanks || header.ringStepBytes % 16 != 0 ||
      header.pairStepBytes % 16 != 0) {
    fprintf(stderr, "%s: needs 2 ranks on one host and steps of a multiple of 16 bytes\nFAIL\n", argv[1]);
    return 1;
  }
  constexpr size_t kLargest = size_t(64) << 20;  // elements
  TwoGpus gpus(plan);
  Cases cases(gpus, kLargest);
  bool right = true;
  for (size_t count :
       {size_t(1), size_t(1000), size_t(12345), size_t(262144), size_t(1000003), size_t(4) << 20, kLargest}) {
    const FormRecord planned = formFor(plan, count * sizeof(float));
    right = cases.run("planned", planned, count) && right;
    for (Algorithm algorithm : {Algorithm::directOneShot, Algorithm::directTwoShot, Algorithm::ring}) {
      FormRecord forced = planned;
      forced.algorithm = uint8_t(algorithm);
      forced.channels = uint16_t(header.channels);
      right = cases.run("forced", forced, count) && right;
    }
  }
  uint64_t sent = 0;
  const bool agree = gpus.countersAgree(sent);
  printf("rank 0 sent %llu bytes; the counters of both ends %s\n", (unsigned long long)sent,
         agree ? "agree" : "DIFFER");
  printf("%s\n", right && agree ? "PASS" : "FAIL");
  return right && agree ? 0 : 1;
}
