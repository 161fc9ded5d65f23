// A rank's positions in the rings, and the memory through which it reaches its neighbours.
#pragma once
#include <span>
#include <vector>

#include "plan/launch_format.h"
#include "plan/plan_view.h"

namespace ncclrun::cuda {

// Regions of channel 0 between this rank and a peer, as this GPU sees them.
struct PeerRegions {
  RegionPair pair;
  RegionPair ring;  // the region that this rank writes if the peer is its neighbour, and the one that the peer writes
};

// Positions by channel. byPeer: the regions of each rank.
std::vector<RingPosition> ringPositions(const PlanView& plan, const Slots& slots, uint32_t rank,
                                        std::span<const PeerRegions> byPeer);

}  // namespace ncclrun::cuda
