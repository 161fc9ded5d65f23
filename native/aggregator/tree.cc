#include "aggregator/tree.h"

namespace ncclrun::aggregator {

Tree::Tree(uint32_t members, uint32_t fanIn) : sizes_{members} {
  do {
    sizes_.push_back((sizes_.back() - 1) / fanIn + 1);
  } while (sizes_.back() > 1);
}

// Blocks differ by one child at most.
Tree::Range Tree::children(uint32_t level, uint32_t node) const {
  const uint64_t below = sizes_[level], nodes = sizes_[level + 1];
  const auto first = uint32_t(node * below / nodes);
  return {first, uint32_t((node + 1) * below / nodes) - first};
}

Tree::Range Tree::ranks(uint32_t level, uint32_t node) const {
  uint32_t first = node, end = node + 1;
  for (uint32_t at = level + 1; at-- > 0;) {
    const Range last = children(at, end - 1);
    first = children(at, first).first;
    end = last.first + last.count;
  }
  return {first, end - first};
}

uint32_t Tree::parentOf(uint32_t level, uint32_t child) const {
  return uint32_t(((child + uint64_t(1)) * sizes_[level + 1] - 1) / sizes_[level]);
}

uint32_t Tree::numberOf(uint32_t level, uint32_t node) const {
  uint32_t number = node;
  for (uint32_t below = 0; below < level; below++) number += nodes(below);
  return number;
}

std::string describeRanks(Tree::Range ranks) {
  const std::string first = std::to_string(ranks.first);
  return ranks.count == 1 ? "rank " + first : "ranks " + first + " to " + std::to_string(ranks.first + ranks.count - 1);
}

}  // namespace ncclrun::aggregator
