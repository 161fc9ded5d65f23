// Measures the network of a communicator by itself: each pair of NICs of two hosts, one pair after another, so that
// nothing else uses the network meanwhile. The first rank of each host measures; the others only take part in gathers.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/error.h"
#include "ncclrun.h"
#include "plan/plan_view.h"

namespace ncclrun::net {

// Every rank contributes equally many bytes and gets those of all ranks, by rank. Waits for all of them.
using Gather = std::function<Status(std::span<const std::byte> own, std::vector<std::byte>& all)>;

struct MeasurementSetup {
  const PlanView& plan;
  uint32_t rank;
  std::span<const uint64_t> sizes;  // of messages, for bandwidth; at most NCCLRUN_NET_SIZES
  bool allNics;                     // also NICs of different indices
  Gather gather;
  std::function<void(const ncclrunNetPair&)> report;  // of each direction
};

// An error ends the measurement; one of a pair is reported with it.
Status measureNetwork(const MeasurementSetup& setup);

}  // namespace ncclrun::net
