// The checks of a HostPlan that look at edges.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "plan/plan_error.h"
#include "plan/plan_view.h"
#include "plan/segment_format.h"
#include "plan/variants.h"

namespace ncclrun {
namespace {

struct Span {
  uint64_t begin, end;
  bool operator<(const Span& other) const { return begin < other.begin; }
};

}  // namespace

Status PlanView::checkEdges() const {
  // Connections of GPUs follow a rule and a single rank has none: no edges are listed, and so none are read.
  if (header_.ranks == 1 || header_.device == uint8_t(plan::Device::cuda)) {
    for (uint32_t index = 0; index < header_.localRanks; index++) {
      if (const uint32_t edges = local(index).edgeCount; edges != 0)
        return wrongPlan("has " + number(edges) + " edges of rank " + number(local(index).rank) +
                         ", where none can be");
    }
    return {};
  }
  uint64_t next = 0;
  for (uint32_t index = 0; index < header_.localRanks; index++) {
    const auto record = local(index);
    const std::string whose = "of rank " + number(record.rank);
    if (record.firstEdge != next) return wrongPlan("does not list the edges " + whose + " behind those before them");
    next += record.edgeCount;
    if (next > header_.edgeTable.count) return wrongPlan("has edges " + whose + " beyond its edge table");
    NCCLRUN_TRY(checkEdgesOf(index));
  }
  return checkSharedEdges();
}

Status PlanView::checkEdgesOf(uint32_t localIndex) const {
  const auto record = local(localIndex);
  const std::string whose = "of rank " + number(record.rank);
  std::set<std::tuple<uint8_t, uint32_t, uint32_t, uint8_t>> seen;  // kind, channel, peer, direction
  uint64_t rings = 0;
  for (uint32_t i = 0; i < record.edgeCount; i++) {
    const auto edge = this->edge(record.firstEdge + i);
    const std::string which = "edge " + number(i) + " " + whose;
    NCCLRUN_TRY(checkEdge(edge, record.rank, which));
    // A rank has one neighbour each way in a ring, so one edge for each.
    if (!seen.emplace(edge.kind, edge.channel, edge.peer, edge.sends).second)
      return wrongPlan("has " + which + " twice");
    if (edge.kind == uint8_t(plan::EdgeKind::ring)) rings++;
  }
  if (rings == 2 * uint64_t(header_.channels)) return {};
  return wrongPlan("has " + number(rings) + " ring edges " + whose + " for " + number(header_.channels) + " channels");
}

Status PlanView::checkEdge(const plan::EdgeRecord& edge, uint32_t rank, const std::string& which) const {
  if (edge.kind > uint8_t(plan::EdgeKind::collnet)) return wrongPlan("has kind " + number(edge.kind) + " in " + which);
  if (edge.channel >= header_.channels) return wrongPlan("has channel " + number(edge.channel) + " in " + which);
  if (edge.sends > 1) return wrongPlan("has direction " + number(edge.sends) + " in " + which);
  if (edge.peer >= header_.ranks || edge.peer == rank)
    return wrongPlan("has rank " + number(edge.peer) + " at the other end of " + which);
  if (edge.steps < 2 || edge.steps > kMaxSteps || edge.stepBytes < 16 || edge.stepBytes > (1u << 30))
    return wrongPlan("has " + number(edge.steps) + " slots of " + number(edge.stepBytes) + " bytes in " + which);
  if (edge.kind == uint8_t(plan::EdgeKind::ring)) NCCLRUN_TRY(checkRingEdge(edge, rank, which));
  if (edge.kind == uint8_t(plan::EdgeKind::tree) && treeParent(edge.channel, rank) != edge.peer &&
      treeParent(edge.channel, edge.peer) != rank) {
    return wrongPlan("has rank " + number(edge.peer) + " at the other end of " + which + ", which its tree does not");
  }
  NCCLRUN_TRY(checkEdgeNics(edge, which));
  if (edge.transport != uint8_t(plan::Transport::shm)) return {};
  const uint64_t bytes = connectionBytes(edge.steps, edge.stepBytes);
  if (edge.segmentOffset % 64 == 0 && edge.segmentOffset <= header_.segmentBytes &&
      bytes <= header_.segmentBytes - edge.segmentOffset) {
    return {};
  }
  return wrongPlan("places " + which + " at byte " + number(edge.segmentOffset) +
                   " of the segment, where it cannot lie");
}

Status PlanView::checkRingEdge(const plan::EdgeRecord& edge, uint32_t rank, const std::string& which) const {
  const uint32_t distance = edge.sends ? 1 : header_.ranks - 1;
  if (edge.peer != ring(edge.channel, (ringIndex(edge.channel, rank) + distance) % header_.ranks))
    return wrongPlan("has rank " + number(edge.peer) + " at the other end of " + which + ", which its ring does not");
  // Where both ends look at one Connection they take its slots from the header.
  if (edge.transport == uint8_t(plan::Transport::shm) &&
      (edge.steps != header_.ringSteps || edge.stepBytes != header_.ringStepBytes)) {
    return wrongPlan("has " + number(edge.steps) + " slots of " + number(edge.stepBytes) + " bytes in " + which +
                     ", of rings that have " + number(header_.ringSteps) + " of " + number(header_.ringStepBytes));
  }
  return {};
}

Status PlanView::checkSharedEdges() const {
  using Key = std::tuple<uint8_t, uint32_t, uint32_t, uint32_t>;  // kind, channel, sender, receiver
  std::map<Key, uint64_t> sendOffset, receiveOffset;
  std::vector<Span> used{{header_.abortOffset, header_.abortOffset + sizeof(AbortBlock)},
                         {header_.doorbellOffset, header_.doorbellOffset + header_.localRanks * sizeof(Doorbell)},
                         {header_.barrierOffset, header_.barrierOffset + sizeof(NodeBarrier)}};
  if (header_.sameHostTransport == uint8_t(plan::Transport::shm) && header_.localRanks > 1) {
    const uint64_t pairs = uint64_t(header_.localRanks) * header_.localRanks * header_.pairStride;
    used.push_back({header_.pairOffset, header_.pairOffset + pairs});
  }
  for (uint32_t index = 0; index < header_.localRanks; index++) {
    const auto record = local(index);
    for (uint32_t i = 0; i < record.edgeCount; i++) {
      const auto edge = this->edge(record.firstEdge + i);
      if (edge.transport != uint8_t(plan::Transport::shm)) continue;
      const uint32_t sender = edge.sends ? record.rank : edge.peer, receiver = edge.sends ? edge.peer : record.rank;
      (edge.sends ? sendOffset : receiveOffset)[{edge.kind, edge.channel, sender, receiver}] = edge.segmentOffset;
      const uint64_t bytes = connectionBytes(edge.steps, edge.stepBytes);
      if (edge.sends) used.push_back({edge.segmentOffset, edge.segmentOffset + bytes});
    }
  }
  if (sendOffset != receiveOffset) return wrongPlan("has a shared-memory edge whose ends differ in place or transport");
  std::sort(used.begin(), used.end());
  for (size_t i = 1; i < used.size(); i++) {
    if (used[i].begin < used[i - 1].end)
      return wrongPlan("places two things at byte " + number(used[i].begin) + " of the segment");
  }
  return {};
}

}  // namespace ncclrun
