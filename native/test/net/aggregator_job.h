// An aggregator and members of groups at it, for tests.
#pragma once
#include <memory>

#include "aggregator/aggregator.h"
#include "aggregator/aggregator_network.h"
#include "net/collective_scenarios.h"

namespace ncclrun::test {

inline constexpr net::Token kJobToken = {1, 2, 3};

// Members of a group at these servers.
inline std::unique_ptr<Members> membersAt(const std::vector<net::Handle>& servers, uint32_t count,
                                          uint64_t timeout = 20'000'000'000, const net::Token& token = kJobToken,
                                          uint32_t fanIn = aggregator::kDefaultFanIn) {
  return std::make_unique<Members>(count, [&](Member& member) {
    OK(aggregator::makeAggregatorNetwork(
        {.servers = servers, .token = token, .address = "127.0.0.1", .timeout = timeout, .fanIn = fanIn},
        member.collective));
  });
}
inline std::unique_ptr<Members> membersAt(const net::Handle& server, uint32_t count, uint64_t timeout = 20'000'000'000,
                                          const net::Token& token = kJobToken) {
  return membersAt(std::vector{server}, count, timeout, token);
}

// An aggregator in this process, and members of one group.
struct AggregatorJob {
  std::unique_ptr<aggregator::Aggregator> server;
  std::unique_ptr<Members> members;

  explicit AggregatorJob(uint32_t count, const aggregator::ServerLimits& limits = {}) {
    OK(aggregator::Aggregator::make({.address = "127.0.0.1", .token = kJobToken, .limits = limits}, server));
    members = membersAt(server->handle(), count);
  }
};

// Several aggregators in this process.
struct Aggregators {
  std::vector<std::unique_ptr<aggregator::Aggregator>> all;
  std::vector<net::Handle> handles;

  explicit Aggregators(uint32_t count, const aggregator::ServerLimits& limits = {}) : all(count) {
    for (std::unique_ptr<aggregator::Aggregator>& each : all) {
      OK(aggregator::Aggregator::make({.address = "127.0.0.1", .token = kJobToken, .limits = limits}, each));
      handles.push_back(each->handle());
    }
  }
};

}  // namespace ncclrun::test
