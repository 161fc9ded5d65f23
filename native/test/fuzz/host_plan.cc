#include "plan/plan_view.h"

using ncclrun::PlanView;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  PlanView view;
  if (!view.open({reinterpret_cast<const std::byte*>(data), size}).ok()) return 0;
  // What was accepted can be read wholly.
  const auto& header = view.header();
  size_t sum = 0;
  for (uint32_t host = 0; host < header.hosts; ++host)
    sum += view.hostName(host).size() + view.hostAddress(host).size();
  sum += view.networkName().size();
  for (uint32_t rank = 0; rank < header.ranks; ++rank) {
    const uint32_t host = view.peer(rank).host;
    if (view.sameHost(rank)) sum += view.gpuNic(view.peer(rank).localIndex, "0000:1b:00.0").sends;
    const uint32_t nic = view.pairNic(rank);
    if (nic != ncclrun::plan::kNoNic) sum += view.nicName(host, nic).size() + view.nicAddress(nic).size();
  }
  for (uint32_t i = 0; i < header.localRanks; ++i) {
    const auto local = view.local(i);
    for (uint32_t index = 0; index < local.edgeCount; ++index) {
      const auto edge = view.edge(local.firstEdge + index);
      sum += edge.peer;
      if (edge.nic != ncclrun::plan::kNoNic) sum += view.describePeerNic(edge).size();
    }
  }
  for (uint32_t channel = 0; channel < header.channels; ++channel) {
    for (uint32_t place = 0; place < header.ranks; ++place) {
      const uint32_t rank = view.ring(channel, place);
      sum += view.peer(rank).localIndex + view.ringIndex(channel, rank) + view.treeParent(channel, rank);
    }
  }
  for (uint32_t i = 0; i < header.tuningTable.count; ++i) {
    const auto row = view.tuning(i);
    for (uint32_t variant = 0; variant < row.variantCount; ++variant)
      sum += view.variant(row.firstVariant + variant).channels;
  }
  volatile size_t keep = sum;
  (void)keep;
  return 0;
}
