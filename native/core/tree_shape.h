// The tree that ends at a given rank, by a rule from the plan's first ring: between hosts a binary tree of one rank
// each, inside a host a binary tree below that one. So every host but the root's sends and receives the data once.
#pragma once
#include <cstdint>
#include <vector>

#include "core/plan_view.h"

namespace ncclrun {

struct TreePlace {
  std::vector<uint32_t> children;  // ranks on other hosts first
  uint32_t parent = 0;             // undefined at the root
};

TreePlace placeInTree(const PlanView& plan, uint32_t rank, uint32_t root);

}  // namespace ncclrun
