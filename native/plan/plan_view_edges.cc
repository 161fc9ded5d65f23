// The checks of a HostPlan that look at edges and tuning rows.
#include <algorithm>
#include <cstdio>
#include <map>
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
        return wrongPlan("has " + number(edges) + " ring edges of rank " + number(local(index).rank) +
                         ", where none can be");
    }
    return {};
  }
  using Key = std::pair<uint32_t, uint32_t>;  // channel, sending rank
  std::map<Key, uint64_t> sendOffset, receiveOffset;
  const uint64_t bytes = connectionBytes(header_.ringSteps, header_.ringStepBytes);
  const uint64_t pairs = uint64_t(header_.localRanks) * header_.localRanks * header_.pairStride;
  std::vector<Span> used{{header_.abortOffset, header_.abortOffset + sizeof(AbortBlock)},
                         {header_.doorbellOffset, header_.doorbellOffset + header_.localRanks * sizeof(Doorbell)},
                         {header_.barrierOffset, header_.barrierOffset + sizeof(NodeBarrier)}};
  if (header_.sameHostTransport == uint8_t(plan::Transport::shm) && header_.localRanks > 1) {
    used.push_back({header_.pairOffset, header_.pairOffset + pairs});
  }

  // What each local rank must have: one edge to the next and one from the previous rank of every channel.
  const auto neighbour = [&](uint32_t channel, uint32_t rank, uint32_t distance) {
    return ring(channel, (ringIndex(channel, rank) + distance) % header_.ranks);
  };
  for (uint32_t index = 0; index < header_.localRanks; index++) {
    const auto record = local(index);
    const std::string whose = "of rank " + number(record.rank);
    if (record.firstEdge > header_.edgeTable.count || record.edgeCount > header_.edgeTable.count - record.firstEdge) {
      return wrongPlan("has edges " + whose + " beyond its edge table");
    }
    if (record.edgeCount != 2 * header_.channels) {
      return wrongPlan("has " + number(record.edgeCount) + " ring edges " + whose + " for " + number(header_.channels) +
                       " channels");
    }
    std::vector<uint8_t> seen(2 * size_t(header_.channels), 0);
    for (uint32_t i = 0; i < record.edgeCount; i++) {
      const auto edge = this->edge(record.firstEdge + i);
      const std::string which = "edge " + number(i) + " " + whose;
      if (edge.channel >= header_.channels) return wrongPlan("has channel " + number(edge.channel) + " in " + which);
      if (edge.sends > 1) return wrongPlan("has direction " + number(edge.sends) + " in " + which);
      if (edge.peer != neighbour(edge.channel, record.rank, edge.sends ? 1 : header_.ranks - 1)) {
        return wrongPlan("has rank " + number(edge.peer) + " at the other end of " + which +
                         ", which its ring does not");
      }
      if (seen[2 * edge.channel + edge.sends]++) return wrongPlan("has " + which + " twice");
      const bool shm = edge.transport == uint8_t(plan::Transport::shm);
      if (!shm && edge.transport != uint8_t(plan::Transport::socket)) {
        return wrongPlan("wants transport " + number(edge.transport) + " for " + which +
                         "; the host device has shm (0) and socket (1)");
      }
      if (!shm) continue;
      if (!sameHost(edge.peer)) return wrongPlan("wants shared memory with another host for " + which);
      if (edge.segmentOffset % 64 != 0 || edge.segmentOffset > header_.segmentBytes ||
          bytes > header_.segmentBytes - edge.segmentOffset) {
        return wrongPlan("places " + which + " at byte " + number(edge.segmentOffset) +
                         " of the segment, where it cannot lie");
      }
      (edge.sends ? sendOffset : receiveOffset)[{edge.channel, edge.sends ? record.rank : edge.peer}] =
          edge.segmentOffset;
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

Status PlanView::checkTuning() const {
  int previousCollective = -1;
  uint64_t previousSize = ~0ull;
  for (uint32_t index = 0; index < header_.tuningTable.count; index++) {
    const auto row = tuning(index);
    const std::string which = "tuning row " + number(index);
    if (row.collective > uint8_t(plan::Collective::barrier))
      return wrongPlan("has collective " + number(row.collective) + " in " + which);
    if (row.collective < previousCollective) return wrongPlan("has " + which + " out of order");
    if (row.collective == previousCollective ? row.upToBytes <= previousSize : previousSize != ~0ull) {
      return wrongPlan("has sizes that do not ascend to the end at " + which);
    }
    if (row.variantCount == 0 || row.firstVariant > header_.variantTable.count ||
        row.variantCount > header_.variantTable.count - row.firstVariant) {
      return wrongPlan("has no variant, or one beyond its variant table, in " + which);
    }
    NCCLRUN_TRY(checkRow(index));
    previousCollective = row.collective;
    previousSize = row.upToBytes;
  }
  if (previousSize != ~0ull)
    return wrongPlan("has no variant for the largest sizes of collective " + number(previousCollective));
  return {};
}

Status PlanView::checkRow(uint32_t index) const {
  const auto row = tuning(index);
  const auto device = plan::Device(header_.device);
  const auto collective = plan::Collective(row.collective);
  for (uint32_t variant = row.firstVariant; variant < row.firstVariant + row.variantCount; variant++) {
    NCCLRUN_TRY(checkVariant(variant));
    if (!hasVariant(device, collective, this->variant(variant)))
      return wrongPlan("chooses " + nameOf(this->variant(variant)) + " for " + nameOf(collective) + " in tuning row " +
                       number(index) + ", which the " + nameOf(device) + " device does not have");
  }
  if (this->variant(row.firstVariant + row.variantCount - 1).requires_ != 0)
    return wrongPlan("has preconditions for the last variant of tuning row " + number(index) +
                     ", so that a call could have none");
  return {};
}

Status PlanView::checkVariant(uint32_t index) const {
  const auto variant = this->variant(index);
  const std::string which = " in variant " + number(index);
  if (variant.algorithm > uint8_t(plan::Algorithm::copyEngine))
    return wrongPlan("has algorithm " + number(variant.algorithm) + which);
  if (variant.protocol > uint8_t(plan::Protocol::ll128))
    return wrongPlan("has protocol " + number(variant.protocol) + which);
  if (variant.channels == 0 || variant.channels > header_.channels) {
    return wrongPlan("uses " + number(variant.channels) + " of " + number(header_.channels) + " channels" + which);
  }
  if ((variant.flags & ~plan::kAsMessages) != 0) return wrongPlan("has unknown flags " + number(variant.flags) + which);
  if (variant.threads < 64 || variant.threads > 4096)
    return wrongPlan("has " + number(variant.threads) + " threads, 64 to 4096 can be," + which);
  if (variant.chunkBytes == 0 || variant.chunkBytes > (1ull << 40))
    return wrongPlan("has chunks of " + number(variant.chunkBytes) + " bytes" + which);
  return {};
}

}  // namespace ncclrun
