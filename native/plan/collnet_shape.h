// Which ranks send to a network that reduces, and how the others reach them (algorithm/collnet.h), for a plan that
// chooses collnet.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "plan/plan_view.h"

namespace ncclrun {

// What a plan wants of such a network.
struct CollnetUse {
  uint32_t channels = 0;  // on which some call is reduced; 0: none is
  bool isChain = false;   // else the direct form
};
CollnetUse collnetUse(const PlanView& plan);

// A rank's place in the chain of its host on one channel.
struct ChainPosition {
  std::optional<uint32_t> farther;  // the next rank away from the network
  std::optional<uint32_t> nearer;   // the next one towards it; none: this rank is the master
  uint32_t distance;                // ranks between this one and the network
};
ChainPosition chainPosition(const PlanView& plan, uint32_t rank, uint32_t channel);

// The same on all channels that the plan uses for chains.
std::vector<ChainPosition> collnetChains(const PlanView& plan, uint32_t rank);

// The ranks whose contributions the network reduces on a channel, by host, where `rank` is one of them; else empty.
std::vector<uint32_t> collnetGroup(const PlanView& plan, uint32_t rank, uint32_t channel, bool isChain);

}  // namespace ncclrun
