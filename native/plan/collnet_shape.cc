#include "plan/collnet_shape.h"

#include <algorithm>
#include <iterator>
#include <set>

namespace ncclrun {
namespace {

// The channels take the NICs of a host in turn: the first rank of each is a master.
uint32_t masterOf(const PlanView& plan, uint32_t host, uint32_t channel) {
  std::vector<uint32_t> masters;
  std::set<uint32_t> nics;
  const uint32_t count = plan.ranksOf(host);
  for (uint32_t local = 0; local < count; local++) {
    const uint32_t rank = plan.member(host, local);
    if (nics.insert(plan.pairNic(rank)).second) masters.push_back(rank);
  }
  return masters[channel % masters.size()];
}

}  // namespace

CollnetUse collnetUse(const PlanView& plan) {
  CollnetUse use;
  for (uint32_t index = 0; index < plan.header().variantTable.count; index++) {
    const auto variant = plan.variant(index);
    const bool isChain = variant.algorithm == uint8_t(plan::Algorithm::collnetChain);
    if (!isChain && variant.algorithm != uint8_t(plan::Algorithm::collnet)) continue;
    use = {.channels = std::max<uint32_t>(use.channels, variant.channels), .isChain = isChain};
  }
  return use;
}

// In the order of the channel's ring, whose neighbours are near each other.
ChainPosition chainPosition(const PlanView& plan, uint32_t rank, uint32_t channel) {
  const uint32_t host = plan.peer(rank).host;
  const uint32_t ring = channel % plan.header().channels;
  std::vector<uint32_t> ranks;
  const uint32_t count = plan.ranksOf(host);
  for (uint32_t local = 0; local < count; local++) ranks.push_back(plan.member(host, local));
  std::ranges::sort(ranks, {}, [&](uint32_t one) { return plan.ringIndex(ring, one); });
  std::rotate(ranks.begin(), std::ranges::find(ranks, masterOf(plan, host, channel)), ranks.end());
  const auto at = uint32_t(std::distance(ranks.begin(), std::ranges::find(ranks, rank)));
  ChainPosition place{.farther = {}, .nearer = {}, .distance = at};
  if (at > 0) place.nearer = ranks[at - 1];
  if (at + 1 < count) place.farther = ranks[at + 1];
  return place;
}

std::vector<ChainPosition> collnetChains(const PlanView& plan, uint32_t rank) {
  std::vector<ChainPosition> chains;
  const CollnetUse use = collnetUse(plan);
  for (uint32_t channel = 0; use.isChain && channel < use.channels; channel++)
    chains.push_back(chainPosition(plan, rank, channel));
  return chains;
}

std::vector<uint32_t> collnetGroup(const PlanView& plan, uint32_t rank, uint32_t channel, bool isChain) {
  std::vector<uint32_t> group;
  for (uint32_t host = 0; host < plan.header().hosts; host++)
    group.push_back(isChain ? masterOf(plan, host, channel) : plan.member(host, plan.peer(rank).localIndex));
  return std::ranges::find(group, rank) == group.end() ? std::vector<uint32_t>() : group;
}

}  // namespace ncclrun
