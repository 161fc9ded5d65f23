#include "cuda/ring_positions.h"

namespace ncclrun::cuda {

std::vector<RingPosition> ringPositions(const PlanView& plan, const Slots& slots, uint32_t rank,
                                        std::span<const PeerRegions> byPeer) {
  const uint32_t ranks = plan.header().ranks;
  const bool apart = hasRingsApart(ranks);
  std::vector<RingPosition> positions;
  for (uint32_t channel = 0; channel < slots.channels; channel++) {
    const uint32_t index = plan.ringIndex(channel, rank);
    const uint32_t previous = plan.ring(channel, (index + ranks - 1) % ranks);
    const uint32_t next = plan.ring(channel, (index + 1) % ranks);
    const uint64_t at = apart ? channel * ringRegionBytes(slots) : regionOffset(slots, channel);
    const auto with = [&](uint32_t peer) {
      const RegionPair& regions = apart ? byPeer[peer].ring : byPeer[peer].pair;
      return RegionPair{regions.in + at, regions.out + at, regions.isRemote};
    };
    positions.push_back({.index = uint16_t(index),
                         .previous = uint16_t(previous),
                         .next = uint16_t(next),
                         .unused = 0,
                         // Of two ranks the previous is the next one, too.
                         .state = apart ? slots.channels * ranks + channel : channel * ranks + next,
                         .slots = apart ? uint32_t(kRegionHeaderBytes) : slotOffset(0, slots),
                         .steps = apart ? slots.ringSteps : slots.pairSteps,
                         .stepBytes = apart ? slots.ringStepBytes : pairStepBytes(slots, channel),
                         .fromPrevious = with(previous),
                         .toNext = with(next)});
  }
  return positions;
}

}  // namespace ncclrun::cuda
