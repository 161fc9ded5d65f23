#include "plan/tree_shape.h"

#include <algorithm>

namespace ncclrun {

TreePosition treePosition(const PlanView& plan, uint32_t channel, uint32_t rank, uint32_t root) {
  TreePosition place{plan.treeChildren(channel, rank), plan.treeParent(channel, rank)};
  if (rank == root) {
    if (place.parent != PlanView::kTop) place.children.push_back(place.parent);
    return place;
  }
  // Where the root is below us, its side is the way up, and what was above us is below.
  uint32_t below = root;
  uint32_t above = plan.treeParent(channel, root);
  while (above != rank && above != PlanView::kTop) {
    below = above;
    above = plan.treeParent(channel, below);
  }
  if (above == PlanView::kTop) return place;
  place.children.erase(std::find(place.children.begin(), place.children.end(), below));
  if (place.parent != PlanView::kTop) place.children.push_back(place.parent);
  place.parent = below;
  return place;
}

uint32_t topOfTree(const PlanView& plan, uint32_t channel) {
  uint32_t top = 0;
  for (uint32_t above = 0; above != PlanView::kTop; above = plan.treeParent(channel, top)) top = above;
  return top;
}

}  // namespace ncclrun
