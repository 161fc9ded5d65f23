#include "host/shm/transport.h"

namespace ncclrun {

uint64_t ShmTransport::offset(uint32_t peer, uint32_t channel, bool sends) const {
  const uint32_t mine = plan_.peer(rank_).localIndex;
  const uint32_t theirs = plan_.peer(peer).localIndex;
  if (channel == kPairChannel) return sends ? plan_.pairOffset(mine, theirs) : plan_.pairOffset(theirs, mine);
  const auto local = plan_.local(mine);
  uint32_t index = local.firstEdge;
  // Every channel's two edges are there: PlanView has counted them.
  while (plan_.edge(index).channel != channel || bool(plan_.edge(index).sends) != sends) index++;
  return plan_.edge(index).segmentOffset;
}

Endpoint* ShmTransport::endpoint(uint32_t peer, uint32_t channel, bool sends) {
  auto& end = connections_[{peer, channel, sends}];
  if (end == nullptr) {
    const auto& header = plan_.header();
    const bool pair = channel == kPairChannel;
    const Endpoint::Facts facts{.peer = peer,
                                .channel = channel,
                                .sends = sends,
                                .transport = plan::Transport::shm,
                                .steps = pair ? header.pairSteps : header.ringSteps,
                                .stepBytes = pair ? header.pairStepBytes : header.ringStepBytes,
                                .peerName = plan_.describe(peer)};
    end = std::make_unique<ShmEndpoint>(facts, current_, segment_.connection(offset(peer, channel, sends)),
                                        segment_.doorbell(plan_.peer(peer).localIndex), gonePeers_);
  }
  return end.get();
}

}  // namespace ncclrun
