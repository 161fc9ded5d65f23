// A member's side of a group at an aggregator, once all members have joined.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "aggregator/frame_reader.h"
#include "aggregator/heartbeats.h"
#include "base/descriptor.h"
#include "net/collective_network.h"

namespace ncclrun::aggregator {

struct GroupConnection {
  Descriptor socket;
  std::string server;    // "the aggregator at 10.0.0.9 port 4000"
  uint64_t timeout = 0;  // nanoseconds
  Heartbeats& heartbeats;
};

// reader: what it has read already is kept.
Status makeAggregatorGroup(GroupConnection connection, const FrameReader& reader,
                           std::unique_ptr<net::CollectiveGroup>& out);

// Whether aggregators reduce this.
bool isReducible(net::Reduction reduction);

}  // namespace ncclrun::aggregator
