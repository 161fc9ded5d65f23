// The collective network of an aggregator, as its members use it: behind the same interface as a plugin's.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "aggregator/join.h"
#include "net/collective_network.h"
#include "net/socket/wire.h"

namespace ncclrun::aggregator {

// The members of a group must have the same servers in the same order, the same token and the same fan-in.
struct NetworkConfig {
  std::vector<net::Handle> servers;  // of the job's aggregators: Aggregator::handle()
  net::Token token = {};
  std::string interface = {}, address = {};  // of this host: where connections come from
  uint64_t timeout = 20'000'000'000;         // nanoseconds without a sign of life of an aggregator
  // Children of an aggregator at most: a group of more members has a tree of aggregators, if there are several.
  uint32_t fanIn = kDefaultFanIn;
};

Status makeAggregatorNetwork(const NetworkConfig& config, std::unique_ptr<net::CollectiveNetwork>& out);

}  // namespace ncclrun::aggregator
