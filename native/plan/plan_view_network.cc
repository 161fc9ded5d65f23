// The network of a HostPlan: NICs, and which of them edges and pairs use.
#include <algorithm>
#include <cctype>
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

Status PlanView::checkAggregators() const {
  constexpr uint32_t kMost = 1024;
  if (aggregators() > kMost)
    return wrongPlan("has " + number(aggregators()) + " aggregators; up to " + number(kMost) + " can be");
  for (uint32_t index = 0; index < aggregators(); index++) {
    const auto record = aggregator(index);
    const std::string which = " of aggregator " + number(index);
    if (!hasText(record.addressOffset, record.addressBytes))
      return wrongPlan("has the address" + which + " outside its strings");
    if (record.port == 0 || record.port > 0xffff) return wrongPlan("has port " + number(record.port) + which);
  }
  return {};
}

Status PlanView::checkGpuNics() const {
  constexpr auto kLast = uint8_t(plan::GpuDirect::noReads);
  for (uint32_t index = 0; index < header_.gpuNicTable.count; index++) {
    const auto record = gpuNic(index);
    const std::string which = " in GPU NIC " + number(index);
    if (record.local >= header_.localRanks) return wrongPlan("has local rank " + number(record.local) + which);
    if (record.receives > kLast || record.sends > kLast)
      return wrongPlan("has GPUDirect " + number(std::max(record.receives, record.sends)) + which);
  }
  return {};
}

namespace {

// As GpuNicRecord::card has it, of the last element of a path: "0000:1b:00.1". kAnyCard: it is no PCI address.
uint64_t cardOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  const std::string_view address = slash == std::string_view::npos ? path : path.substr(slash + 1);
  const size_t function = address.rfind('.');
  uint64_t card = 0;
  if (function == std::string_view::npos) return plan::kAnyCard;
  for (const char letter : address.substr(0, function)) {
    if (letter == ':') continue;
    if (!std::isxdigit(static_cast<unsigned char>(letter))) return plan::kAnyCard;
    card = card << 4 | uint64_t(letter <= '9' ? letter - '0' : (letter | 0x20) - 'a' + 10);
  }
  return card;
}

}  // namespace

plan::GpuNicRecord PlanView::gpuNic(uint32_t local, std::string_view pciPath) const {
  constexpr auto kTooFar = uint8_t(plan::GpuDirect::tooFar);
  const uint64_t card = cardOf(pciPath);
  plan::GpuNicRecord found{.card = plan::kAnyCard,
                           .local = local,
                           .receives = kTooFar,
                           .sends = kTooFar,
                           .reserved = {},
                           .path = {'D', 'I', 'S', '\0'},
                           .reserved2 = 0};
  for (uint32_t index = 0; index < header_.gpuNicTable.count; index++) {
    const auto record = gpuNic(index);
    if (record.local != local || (record.card != card && record.card != plan::kAnyCard)) continue;
    found = record;
    if (record.card == card) break;
  }
  return found;
}

uint32_t PlanView::pairNic(uint32_t receiver, uint32_t channel) const {
  const auto record = peer(receiver);
  const uint32_t nics = nicCount(), ranks = shapeOf(record.host).ranks;
  if (record.pairNic == plan::kNoNic || nics <= ranks) return record.pairNic;
  const auto begin = [&](uint64_t local) { return uint32_t(local * nics / ranks); };
  const uint32_t own = begin(record.localIndex + 1) - begin(record.localIndex);
  return (record.pairNic + channel % own) % nics;
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
