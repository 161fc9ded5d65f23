// Rings and trees of a HostPlan: what they are, and the checks of the tables that say so.
#include <algorithm>
#include <string>
#include <vector>

#include "plan/plan_error.h"
#include "plan/plan_view.h"

namespace ncclrun {
namespace {

// Whether all of 0..count-1 come to one and the same top, which is its own parent. All parents are below count.
template <class ParentOf>
bool isTree(uint32_t count, const ParentOf& parentOf) {
  std::vector<bool> known(count);  // comes to the top
  std::vector<uint32_t> path;
  uint32_t tops = 0;
  for (uint32_t start = 0; start < count; start++) {
    path.clear();
    uint32_t at = start;
    while (!known[at]) {
      if (path.size() > count) return false;
      path.push_back(at);
      const uint32_t parent = parentOf(at);
      if (parent == at) {
        tops++;
        break;
      }
      at = parent;
    }
    for (const uint32_t one : path) known[one] = true;
  }
  return tops == 1;
}

}  // namespace

uint32_t PlanView::ring(uint32_t channel, uint32_t position) const {
  const auto record = this->channel(channel);
  const auto firstPosition = [&](uint32_t stop) {
    return hostRing(record.hostRing, hostRing(record.hostRing, stop).host).firstPosition;
  };
  uint32_t begin = 0, end = header_.hosts;
  while (end - begin > 1) {
    const uint32_t middle = begin + (end - begin) / 2;
    (firstPosition(middle) <= position ? begin : end) = middle;
  }
  const uint32_t host = hostRing(record.hostRing, begin).host;
  return member(host, ringEntry(shapeOf(host), record.ring, position - firstPosition(begin)));
}

uint32_t PlanView::ringIndex(uint32_t channel, uint32_t rank) const {
  const auto record = this->channel(channel);
  const auto [host, local, port, nic] = peer(rank);
  const auto shape = shapeOf(host);
  uint32_t position = 0;
  while (ringEntry(shape, record.ring, position) != local) position++;
  return hostRing(record.hostRing, host).firstPosition + position;
}

uint32_t PlanView::treeParent(uint32_t channel, uint32_t rank) const {
  const auto record = this->channel(channel);
  const auto [host, local, port, nic] = peer(rank);
  const uint32_t inside = treeEntry(shapeOf(host), record.tree, local);
  if (inside != local) return member(host, inside);
  const auto [above, attachment] = hostTree(record.hostTree, host);
  return above == host ? kTop : member(above, attachment);
}

std::vector<uint32_t> PlanView::treeChildren(uint32_t channel, uint32_t rank) const {
  const auto record = this->channel(channel);
  const auto [host, local, port, nic] = peer(rank);
  std::vector<uint32_t> children;
  for (uint32_t other = 0; other < header_.hosts; other++) {
    const auto [above, attachment] = hostTree(record.hostTree, other);
    if (above != host || other == host || attachment != local) continue;
    const auto there = shapeOf(other);
    uint32_t top = 0;
    while (treeEntry(there, record.tree, top) != top) top++;
    children.push_back(member(other, top));
  }
  const auto shape = shapeOf(host);
  for (uint32_t below = 0; below < shape.ranks; below++) {
    if (below != local && treeEntry(shape, record.tree, below) == local) children.push_back(member(host, below));
  }
  return children;
}

Status PlanView::checkShapes() const {
  uint64_t rings = 0, trees = 0;
  for (uint32_t index = 0; index < header_.shapeTable.count; index++) {
    const auto shape = this->shape(index);
    if (shape.ranks == 0 || shape.ranks > header_.ranks)
      return wrongPlan("has shape " + number(index) + " of " + number(shape.ranks) + " ranks");
    if (shape.firstRing != rings || shape.firstTree != trees)
      return wrongPlan("does not list the rings and trees of shape " + number(index) + " behind those before it");
    rings += uint64_t(header_.rings) * shape.ranks;
    trees += uint64_t(header_.trees) * shape.ranks;
    if (rings > header_.ringTable.count || trees > header_.treeTable.count)
      return wrongPlan("has rings or trees of shape " + number(index) + " beyond their tables");
    NCCLRUN_TRY(checkShape(index));
  }
  for (uint32_t index = 0; index < header_.hosts; index++) {
    if (host(index).shape >= header_.shapeTable.count)
      return wrongPlan("gives host " + number(index) + " shape " + number(host(index).shape) + " of " +
                       number(header_.shapeTable.count));
  }
  return {};
}

Status PlanView::checkShape(uint32_t index) const {
  const auto shape = this->shape(index);
  const std::string where = " of shape " + number(index);
  std::vector<bool> seen(shape.ranks);
  for (uint32_t ring = 0; ring < header_.rings; ring++) {
    std::fill(seen.begin(), seen.end(), false);
    for (uint32_t position = 0; position < shape.ranks; position++) {
      const uint32_t local = ringEntry(shape, ring, position);
      const std::string what = "local rank " + number(local) + " in ring " + number(ring) + where;
      if (local >= shape.ranks) return wrongPlan("has " + what + ", of " + number(shape.ranks));
      if (seen[local]) return wrongPlan("has twice " + what);
      seen[local] = true;
    }
  }
  for (uint32_t tree = 0; tree < header_.trees; tree++) {
    const std::string which = "tree " + number(tree) + where;
    for (uint32_t entry = 0; entry < shape.ranks; entry++) {
      const uint32_t local = treeEntry(shape, tree, entry);
      if (local >= shape.ranks)
        return wrongPlan("has local rank " + number(local) + " in " + which + ", of " + number(shape.ranks));
    }
    if (!isTree(shape.ranks, [&](uint32_t local) { return treeEntry(shape, tree, local); }))
      return wrongPlan("has a " + which + " that is none: not all ranks come to one top");
  }
  return {};
}

// Afterwards the member table has every rank once: by its host and its place there.
Status PlanView::checkMembers() const {
  uint64_t next = 0;
  for (uint32_t index = 0; index < header_.hosts; index++) {
    if (host(index).firstMember != next)
      return wrongPlan("does not list the ranks of host " + number(index) + " behind those before it");
    const uint32_t ranks = shapeOf(index).ranks;
    next += ranks;
    if (next > header_.ranks) return wrongPlan("has more ranks on its hosts than " + number(header_.ranks));
    for (uint32_t local = 0; local < ranks; local++) {
      const uint32_t rank = member(index, local);
      if (rank >= header_.ranks || peer(rank).host != index || peer(rank).localIndex != local)
        return wrongPlan("has rank " + number(rank) + " as member " + number(local) + " of host " + number(index) +
                         ", which its peers do not say");
    }
  }
  if (next != header_.ranks)
    return wrongPlan("has " + number(next) + " ranks on its hosts, of " + number(header_.ranks));
  return {};
}

// Afterwards each ring of hosts has every host once, and places follow one another on the way.
Status PlanView::checkHostRings() const {
  for (uint32_t ring = 0; ring < header_.hostRings; ring++) {
    uint64_t position = 0;
    for (uint32_t stop = 0; stop < header_.hosts; stop++) {
      const uint32_t at = hostRing(ring, stop).host;
      if (at >= header_.hosts || hostRing(ring, at).firstPosition != position)
        return wrongPlan("has host " + number(at) + " as stop " + number(stop) + " of ring " + number(ring) +
                         " of hosts, where its place is not");
      position += shapeOf(at).ranks;
    }
  }
  return {};
}

Status PlanView::checkHostTrees() const {
  for (uint32_t tree = 0; tree < header_.hostTrees; tree++) {
    const std::string which = " in tree " + number(tree) + " of hosts";
    for (uint32_t index = 0; index < header_.hosts; index++) {
      const auto [parent, attachment] = hostTree(tree, index);
      if (parent >= header_.hosts || attachment >= shapeOf(parent).ranks)
        return wrongPlan("has host " + number(index) + " below local rank " + number(attachment) + " of host " +
                         number(parent) + which);
    }
    if (!isTree(header_.hosts, [&](uint32_t index) { return hostTree(tree, index).parent; }))
      return wrongPlan("has a tree of hosts, " + number(tree) + ", that is none: not all come to one top");
  }
  return {};
}

Status PlanView::checkChannels() const {
  for (uint32_t index = 0; index < header_.channels; index++) {
    const auto record = channel(index);
    if (record.ring >= header_.rings || record.hostRing >= header_.hostRings || record.tree >= header_.trees ||
        record.hostTree >= header_.hostTrees)
      return wrongPlan("gives channel " + number(index) + " ring " + number(record.ring) + ", ring of hosts " +
                       number(record.hostRing) + ", tree " + number(record.tree) + " and tree of hosts " +
                       number(record.hostTree) + ", which are not all there");
  }
  return {};
}

}  // namespace ncclrun
