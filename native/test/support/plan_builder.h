// Writes HostPlans by hand, as control/plan/encode.ts does for real ones.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "plan/plan_format.h"

namespace ncclrun::test {

struct Row {
  plan::Collective collective;
  uint64_t upToBytes;
  plan::VariantRecord variant;
  std::vector<plan::VariantRecord> before = {};  // variants that are listed before it
};

inline plan::VariantRecord variant(plan::Algorithm algorithm, uint16_t channels, uint64_t chunkBytes,
                                   uint32_t threads = 64) {
  return {uint8_t(algorithm), uint8_t(plan::Protocol::simple), channels, threads, chunkBytes, 0, 0, 0, 0};
}

// An edge over the network beside those of rings, at both its ends; on channel 0, by the first NICs.
struct MoreEdge {
  uint32_t rank, peer;  // rank sends
  plan::EdgeKind kind;
};

struct PlanSpec {
  std::vector<uint32_t> hostOf;              // by rank
  std::vector<std::vector<uint32_t>> rings;  // by channel; hosts in order; empty: one by rank
  std::vector<uint32_t> ports;               // by rank; empty: none
  std::vector<Row> rows;                     // by collective, then size; empty: ring for everything
  uint32_t ringSteps = 4, ringStepBytes = 4096;
  uint32_t pairSteps = 4, pairStepBytes = 4096;
  uint64_t spinNanoseconds = 20000;
  plan::Device device = plan::Device::host;
  plan::Transport sameHost = plan::Transport::shm;
  plan::Transport otherHost = plan::Transport::socket;
  uint8_t token = 7;
  uint32_t nics = 1;  // of each host: eth0, eth1, …; where a connection uses a network
  std::string nicAddress = "127.0.0.1";
  std::vector<MoreEdge> more;
  std::vector<plan::GpuNicRecord> gpuNics;
  std::vector<uint32_t> aggregators;  // their ports
};

// The plan of one host.
std::vector<std::byte> encode(const PlanSpec& spec, uint32_t host);

// All ranks on one host, all collectives by this variant.
PlanSpec oneHost(uint32_t ranks, const plan::VariantRecord& variant);

}  // namespace ncclrun::test
