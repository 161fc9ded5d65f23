// The tree of aggregators that serves a group: the members in blocks of consecutive ranks, a leaf for each block, and
// levels of aggregators above them up to one, the root. Whoever knows how many members there are and the fan-in knows
// the tree. Level 0 has the leaves.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace ncclrun::aggregator {

class Tree {
 public:
  // members > 0; fanIn > 1: children of a node at most.
  Tree(uint32_t members, uint32_t fanIn);

  struct Range {
    uint32_t first = 0, count = 0;
  };
  uint32_t levels() const { return uint32_t(sizes_.size()) - 1; }
  uint32_t nodes(uint32_t level) const { return sizes_[level + 1]; }
  // Of a node: nodes of the level below, and members at level 0.
  Range children(uint32_t level, uint32_t node) const;
  // All members below a node.
  Range ranks(uint32_t level, uint32_t node) const;
  // The node of the level that has this child.
  uint32_t parentOf(uint32_t level, uint32_t child) const;
  // Number of a node among those of all levels, leaves first.
  uint32_t numberOf(uint32_t level, uint32_t node) const;

 private:
  std::vector<uint32_t> sizes_;  // of the members, and of each level
};

// "rank 3", "ranks 0 to 6"
std::string describeRanks(Tree::Range ranks);

}  // namespace ncclrun::aggregator
