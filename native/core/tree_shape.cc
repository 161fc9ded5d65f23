#include "core/tree_shape.h"

#include <algorithm>

namespace ncclrun {
namespace {

// Member k of a binary tree has members 2k+1 and 2k+2 below it.
void addBelow(const std::vector<uint32_t>& members, uint32_t rank, TreePlace& place) {
  const size_t mine = size_t(std::find(members.begin(), members.end(), rank) - members.begin());
  for (size_t child = 2 * mine + 1; child <= 2 * mine + 2 && child < members.size(); child++) {
    place.children.push_back(members[child]);
  }
  if (mine > 0) place.parent = members[(mine - 1) / 2];
}

}  // namespace

TreePlace placeInTree(const PlanView& plan, uint32_t rank, uint32_t root) {
  const uint32_t ranks = plan.header().ranks;
  const uint32_t first = plan.placeInRing(0, root);
  std::vector<uint32_t> leaders, here;
  std::vector<bool> seen(plan.header().hosts);
  const uint32_t host = plan.peer(rank).host;
  for (uint32_t i = 0; i < ranks; i++) {
    const uint32_t other = plan.ring(0, (first + i) % ranks);
    const uint32_t of = plan.peer(other).host;
    if (!seen[of]) leaders.push_back(other);
    seen[of] = true;
    if (of == host) here.push_back(other);
  }
  TreePlace place;
  if (here[0] == rank) addBelow(leaders, rank, place);
  addBelow(here, rank, place);
  return place;
}

}  // namespace ncclrun
