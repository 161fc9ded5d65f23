// Where a rank stands among its host's ranks and in its rail, for a plan that has rails (variants.h, hasRails).
#pragma once
#include <cstdint>
#include <vector>

#include "plan/plan_view.h"

namespace ncclrun {

struct RailPosition {
  uint32_t hosts;
  uint32_t host;
  uint32_t locals;              // ranks of each host
  uint32_t local;               // this rank's index among them
  std::vector<uint32_t> peers;  // by number of the connection
};

RailPosition railPosition(const PlanView& plan, uint32_t rank);

// All ranks by host, then by local index.
std::vector<uint32_t> ranksByHost(const PlanView& plan);

}  // namespace ncclrun
