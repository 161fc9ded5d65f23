// Where a rank's neighbours in the rings are, and by what memory it reaches them.
#pragma once
#include <span>
#include <vector>

#include "plan/launch_format.h"
#include "plan/plan_view.h"

namespace ncclrun::cuda {

// Of channel 0, between us and a peer, as this GPU sees them.
struct PeerRegions {
  RegionPair pair;
  RegionPair ring;  // what we write into where the peer is our neighbour, and what it writes into
};

// By channel. byPeer: what there is of each rank.
std::vector<RingPlace> ringPlaces(const PlanView& plan, const Slots& slots, uint32_t rank,
                                  std::span<const PeerRegions> byPeer);

}  // namespace ncclrun::cuda
