// read_plan FILE…: opens HostPlans as the engine does and prints what it reads, one fact a line;
// test/native/read-plan.test.ts compares. With --variants, what each device has instead.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "cuda/cuda_memory_use.h"
#include "plan/plan_view.h"
#include "plan/variants.h"

using namespace ncclrun;
using ull = unsigned long long;

static void printHeader(const plan::Header& h) {
  std::printf("header %u %u %u %u %u\n", h.ranks, h.hosts, h.hostIndex, h.localRanks, h.channels);
  std::printf("buffers %u %u %u %u\n", h.ringSteps, h.ringStepBytes, h.pairSteps, h.pairStepBytes);
  std::printf("transports %u %u\n", h.sameHostTransport, h.otherHostTransport);
  std::printf("sockets %u %u\n", h.sockets, h.socketThreads);
  std::printf("spin %llu\nlaunch %u %u %u %u\ntoken ", ull(h.spinNanoseconds), h.smsPerLaunch,
              h.minCopyTimeoutMicroseconds, h.maxCopyTimeoutMicroseconds, h.capturedCopyTimeoutMicroseconds);
  for (const uint8_t byte : h.token) std::printf("%02x", byte);
  std::printf("\nsegment %llu %llu %llu %llu %llu %llu\n", ull(h.segmentBytes), ull(h.abortOffset),
              ull(h.doorbellOffset), ull(h.barrierOffset), ull(h.pairOffset), ull(h.pairStride));
}

static void printGpus(const PlanView& view) {
  const plan::Header& h = view.header();
  if (h.device != uint8_t(plan::Device::cuda)) return;
  std::printf("gpus %u %u %u %u %u\n", h.wideChannels, h.narrowStepBytes, h.lineSteps, h.llStepBytes, h.ll128StepBytes);
  const cuda::MemoryUse use = cuda::memoryUse(view.slots(), h.ranks, view.maxRanksOfAHost());
  std::printf("memory %llu %llu %llu %llu %llu %llu %llu\n", ull(use.total()), ull(use.rings), ull(use.ll),
              ull(use.ll128), ull(use.simple), ull(use.counters), ull(use.tables));
}

static void printTables(const PlanView& view) {
  const plan::Header& h = view.header();
  for (uint32_t i = 0; i < h.hosts; ++i) {
    const std::string_view name = view.hostName(i);
    const std::string_view address = view.hostAddress(i);
    std::printf("host %.*s %.*s\n", int(name.size()), name.data(), int(address.size()), address.data());
    for (uint32_t nic = 0; nic < view.nicCount(i); ++nic) {
      const plan::NicRecord record = view.nic(i, nic);
      std::printf("nic %s %s %u %u %u\n", std::string(view.nicName(i, nic)).c_str(),
                  std::string(view.nicAddress(i, nic)).c_str(), record.speedMbps, record.port, record.gpuDirect);
    }
  }
  for (uint32_t i = 0; i < h.gpuNicTable.count; ++i) {
    const plan::GpuNicRecord record = view.gpuNic(i);
    std::printf("gpu-nic %u %llu %.4s %u %u\n", record.local, ull(record.card), record.path, record.receives,
                record.sends);
  }
  for (uint32_t i = 0; i < view.aggregators(); ++i) {
    std::printf("aggregator %s %u\n", std::string(view.aggregatorAddress(i)).c_str(), view.aggregator(i).port);
  }
  std::printf("network %s\n", std::string(view.networkName()).c_str());
  for (uint32_t rank = 0; rank < h.ranks; ++rank) {
    const plan::PeerRecord peer = view.peer(rank);
    std::printf("peer %u %u %u %u\n", peer.host, peer.localIndex, peer.listenPort, peer.pairNic);
  }
  for (uint32_t channel = 0; channel < h.channels; ++channel) {
    std::printf("ring");
    for (uint32_t place = 0; place < h.ranks; ++place) std::printf(" %u", view.ring(channel, place));
    std::printf("\nparents");
    for (uint32_t rank = 0; rank < h.ranks; ++rank) std::printf(" %d", int(view.treeParent(channel, rank)));
    std::printf("\n");
  }
  for (uint32_t i = 0; i < h.localRanks; ++i) {
    const plan::LocalRecord local = view.local(i);
    std::printf("local %u\n", local.rank);
    for (uint32_t edge = local.firstEdge; edge < local.firstEdge + local.edgeCount; ++edge) {
      const plan::EdgeRecord e = view.edge(edge);
      std::printf("edge %u %u %u %u %u %u %u %u %u %u %llu\n", e.kind, e.channel, e.peer, e.transport, e.sends, e.nic,
                  e.peerNic, e.gpuDirect, e.steps, e.stepBytes, ull(e.segmentOffset));
    }
  }
}

static void printTuning(const PlanView& view) {
  for (uint32_t i = 0; i < view.header().tuningTable.count; ++i) {
    const plan::TuningRecord row = view.tuning(i);
    std::printf("tuning %u %llu\n", row.collective, ull(row.upToBytes));
    for (uint32_t f = row.firstVariant; f < row.firstVariant + row.variantCount; ++f) {
      const plan::VariantRecord variant = view.variant(f);
      std::printf("variant %u %u %u %u %llu %u %u %.17g %.17g\n", variant.algorithm, variant.protocol, variant.channels,
                  variant.threads, ull(variant.chunkBytes), variant.requires_, variant.flags,
                  double(variant.predictedMicroseconds), double(variant.predictedMicrosecondsPerMebibyte));
    }
  }
}

static void printVariants(plan::Device device) {
  for (uint8_t collective = 0; collective <= uint8_t(plan::Collective::barrier); ++collective) {
    for (uint8_t algorithm = 0; algorithm <= uint8_t(plan::Algorithm::collnetChain); ++algorithm) {
      for (uint8_t protocol = 0; protocol <= uint8_t(plan::Protocol::ll128); ++protocol) {
        for (const uint32_t preconditions : {0u, plan::kRequiresPublishedAddresses, plan::kRequiresNetworkReduction}) {
          plan::VariantRecord variant{};
          variant.algorithm = algorithm;
          variant.protocol = protocol;
          variant.requires_ = preconditions;
          std::printf("variant %u %u %u %u %u %d\n", uint8_t(device), collective, algorithm, protocol, preconditions,
                      hasVariant(device, plan::Collective(collective), variant));
        }
      }
    }
  }
  for (uint8_t transport = 0; transport <= uint8_t(plan::Transport::plugin); ++transport) {
    std::printf("transport %u %u %d %d\n", uint8_t(device), transport, hasTransport(device, true, transport),
                hasTransport(device, false, transport));
  }
}

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--variants") == 0) {
    printVariants(plan::Device::host);
    printVariants(plan::Device::cuda);
    return 0;
  }
  for (int i = 1; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    PlanView view;
    if (const Status status = view.open(std::as_bytes(std::span(bytes))); !status.ok()) {
      std::fprintf(stderr, "%s: %s\n", argv[i], status.sentence.c_str());
      return 1;
    }
    printHeader(view.header());
    printGpus(view);
    printTables(view);
    printTuning(view);
  }
}
