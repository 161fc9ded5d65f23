// The collective network of an aggregator, as its members use it: behind the same interface as a plugin's.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "net/collective_network.h"
#include "net/socket/wire.h"

namespace ncclrun::aggregator {

// The members of a group must have the same servers and the same token.
struct NetworkConfig {
  std::vector<net::Handle> servers;  // of the job's aggregators: Aggregator::handle()
  net::Token token = {};
  std::string interface = {}, address = {};  // of this host: where connections come from
  uint64_t timeout = 20'000'000'000;         // nanoseconds without a sign of life of an aggregator
};

Status makeAggregatorNetwork(const NetworkConfig& config, std::unique_ptr<net::CollectiveNetwork>& out);

}  // namespace ncclrun::aggregator
