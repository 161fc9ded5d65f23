// The network of a HostPlan: NICs, and which of them edges and pairs use.
#include <string>
#include <vector>

#include "plan/plan_error.h"
#include "plan/plan_view.h"
#include "plan/variants.h"

namespace ncclrun {

std::string_view PlanView::nicName(uint32_t host, uint32_t index) const {
  const auto record = nic(host, index);
  return text(record.nameOffset, record.nameBytes);
}

std::string_view PlanView::nicAddress(uint32_t host, uint32_t index) const {
  const auto record = nic(host, index);
  return text(record.addressOffset, record.addressBytes);
}

std::string PlanView::describePeerNic(const plan::EdgeRecord& edge) const {
  const uint32_t host = peer(edge.peer).host;
  return std::string(nicName(host, edge.peerNic)) + " of host " + std::string(hostName(host));
}

Status PlanView::checkNetwork() const {
  const auto& h = header_;
  if (!hasText(h.networkOffset, h.networkBytes)) return wrongPlan("has the name of its network outside its strings");
  if (h.sockets == 0 || h.sockets > plan::kMaxSockets)
    return wrongPlan("has " + number(h.sockets) + " sockets per connection; 1 to " + number(plan::kMaxSockets) +
                     " can be");
  if (h.socketThreads > plan::kMaxSocketThreads)
    return wrongPlan("has " + number(h.socketThreads) + " threads for sockets; up to " +
                     number(plan::kMaxSocketThreads) + " can be");
  return {};
}

// Afterwards every host has its own part of the NIC table, and hosts that reach each other over a network have NICs.
Status PlanView::checkNics() const {
  uint64_t next = 0;
  for (uint32_t index = 0; index < header_.hosts; index++) {
    const auto record = host(index);
    if (record.firstNic != next)
      return wrongPlan("does not list the NICs of host " + number(index) + " behind those before them");
    if (record.nicCount >= plan::kNoNic)
      return wrongPlan("has " + number(record.nicCount) + " NICs of host " + number(index));
    next += record.nicCount;
    if (next > header_.nicTable.count) return wrongPlan("has NICs of host " + number(index) + " beyond its NIC table");
    if (record.nicCount == 0 && header_.hosts > 1)
      return wrongPlan("has no NIC of host " + number(index) + ", which others have to reach");
    for (uint32_t i = 0; i < record.nicCount; i++) {
      const auto nic = this->nic(index, i);
      const std::string which = " of NIC " + number(i) + " of host " + number(index);
      if (!hasText(nic.nameOffset, nic.nameBytes) || !hasText(nic.addressOffset, nic.addressBytes))
        return wrongPlan("has the name or address" + which + " outside its strings");
      if (nic.nameBytes == 0) return wrongPlan("lacks the name" + which);
      if (nic.gpuDirect > 1) return wrongPlan("has GPUDirect " + number(nic.gpuDirect) + which);
    }
  }
  if (next != 0 && header_.networkBytes == 0) return wrongPlan("has NICs, and does not name their network");
  return {};
}

// A pair connection uses NICs of one index at both ends: every pair of ranks on different hosts has to have them.
Status PlanView::checkPairNics() const {
  const uint32_t own = nicCount();
  for (uint32_t rank = 0; rank < header_.ranks; rank++) {
    const auto record = peer(rank);
    const std::string which = " for the pairs of rank " + number(rank);
    if (record.host == header_.hostIndex && local(record.localIndex).pairNic != record.pairNic)
      return wrongPlan("has two different NICs" + which);
    if (record.pairNic == plan::kNoNic && nicCount(record.host) == 0) continue;
    if (record.pairNic >= nicCount(record.host) || record.pairNic >= own)
      return wrongPlan("has NIC " + number(record.pairNic) + which + ", where hosts have " +
                       number(nicCount(record.host)) + " and " + number(own));
  }
  return {};
}

Status PlanView::checkEdgeNics(const plan::EdgeRecord& edge, const std::string& which) const {
  const bool same = sameHost(edge.peer);
  const auto device = plan::Device(header_.device);
  if (!hasTransport(device, same, edge.transport))
    return wrongPlan("wants transport " + number(edge.transport) + " for " + which + ", which the " + nameOf(device) +
                     " device does not have between ranks of " + (same ? "one host" : "different hosts"));
  if (edge.gpuDirect > 1) return wrongPlan("has GPUDirect " + number(edge.gpuDirect) + " in " + which);
  if (!isNetwork(edge.transport)) {
    if (edge.nic == plan::kNoNic && edge.peerNic == plan::kNoNic && edge.gpuDirect == 0) return {};
    return wrongPlan("has a NIC in " + which + ", which uses no network");
  }
  if (edge.nic >= nicCount())
    return wrongPlan("has NIC " + number(edge.nic) + " of " + number(nicCount()) + " in " + which);
  const uint32_t there = nicCount(peer(edge.peer).host);
  if (edge.peerNic >= there)
    return wrongPlan("has NIC " + number(edge.peerNic) + " of the peer's " + number(there) + " in " + which);
  if (edge.gpuDirect == 1 && nic(edge.nic).gpuDirect == 0)
    return wrongPlan("wants GPUDirect for " + which + " of a NIC without it");
  return {};
}

}  // namespace ncclrun
