// A member's side of a group that several aggregators serve: its collectives take them in turn.
#pragma once
#include <memory>
#include <vector>

#include "net/collective_network.h"

namespace ncclrun::aggregator {

// groups: at least one, of the same members and in the same order for all of them.
std::unique_ptr<net::CollectiveGroup> makeStripedGroup(std::vector<std::unique_ptr<net::CollectiveGroup>> groups);

}  // namespace ncclrun::aggregator
