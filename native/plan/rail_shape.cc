#include "plan/rail_shape.h"

namespace ncclrun {

std::vector<uint32_t> ranksByHost(const PlanView& plan) {
  const uint32_t locals = plan.ranksOfEachHost();
  std::vector<uint32_t> ranks;
  for (uint32_t host = 0; host < plan.header().hosts; host++) {
    for (uint32_t local = 0; local < locals; local++) ranks.push_back(plan.member(host, local));
  }
  return ranks;
}

RailPosition railPosition(const PlanView& plan, uint32_t rank) {
  const auto self = plan.peer(rank);
  RailPosition place{.hosts = plan.header().hosts,
                     .host = self.host,
                     .locals = plan.ranksOfEachHost(),
                     .local = self.localIndex,
                     .peers = {}};
  const auto with = [&](uint32_t host, uint32_t local) {
    const uint32_t peer = plan.member(host, local);
    if (peer != rank) place.peers.push_back(peer);
  };
  for (uint32_t local = 0; local < place.locals; local++) with(place.host, local);
  for (uint32_t host = 0; host < place.hosts; host++) with(host, place.local);
  return place;
}

}  // namespace ncclrun
