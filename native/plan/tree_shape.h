// A channel's tree of the plan, seen from the rank where an operation begins or ends: the edges stay, those between it
// and the tree's top turn round.
#pragma once
#include <cstdint>
#include <vector>

#include "plan/plan_view.h"

namespace ncclrun {

// Operations by a tree all go through this channel's: their connections are those of two ranks.
inline constexpr uint32_t kTreeChannel = 0;

struct TreePosition {
  std::vector<uint32_t> children;
  uint32_t parent = 0;  // undefined at the root
};

TreePosition treePosition(const PlanView& plan, uint32_t channel, uint32_t rank, uint32_t root);

// The rank at the top of a channel's tree.
uint32_t topOfTree(const PlanView& plan, uint32_t channel);

}  // namespace ncclrun
