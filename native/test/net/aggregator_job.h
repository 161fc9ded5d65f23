// An aggregator and members of groups at it, for tests.
#pragma once
#include <memory>

#include "aggregator/aggregator.h"
#include "aggregator/aggregator_network.h"
#include "net/collective_scenarios.h"

namespace ncclrun::test {

inline constexpr net::Token kJobToken = {1, 2, 3};

// Members of a group at the server of this handle.
inline std::unique_ptr<Members> membersAt(const net::Handle& server, uint32_t count, uint64_t timeout = 20'000'000'000,
                                          const net::Token& token = kJobToken) {
  return std::make_unique<Members>(count, [&](Member& member) {
    OK(aggregator::makeAggregatorNetwork(
        {.servers = {server}, .token = token, .address = "127.0.0.1", .timeout = timeout}, member.collective));
  });
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

}  // namespace ncclrun::test
