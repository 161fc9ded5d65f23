// The reduction server: members of groups in this process and in others, over sockets.
#include <chrono>
#include <cstring>

#include "aggregator/aggregator.h"
#include "aggregator/aggregator_network.h"
#include "net/collective_scenarios.h"
#include "net/contribution.h"

using namespace ncclrun::test;
using ncclrun::Status;
using ncclrun::aggregator::Aggregator;
using ncclrun::aggregator::AggregatorConfig;
using ncclrun::aggregator::makeAggregatorNetwork;
using ncclrun::net::Request;

namespace {

constexpr ncclrun::net::Token kToken = {1, 2, 3};
constexpr ncclDataType_t kTypes[] = {ncclInt8,    ncclUint8,   ncclInt32,   ncclUint32,   ncclInt64,      ncclUint64,
                                     ncclFloat16, ncclFloat32, ncclFloat64, ncclBfloat16, ncclFloat8e4m3, ncclFloat8e5m2};
constexpr ncclRedOp_t kOperators[] = {ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg};

// An aggregator in this process, and members of a group at it.
struct Job {
  std::unique_ptr<Aggregator> server;
  std::unique_ptr<Members> members;

  explicit Job(uint32_t count, const ncclrun::aggregator::ServerLimits& limits = {}) {
    OK(Aggregator::make({.address = "127.0.0.1", .token = kToken, .limits = limits}, server));
    members = group(count);
  }
  // Members of one more group.
  std::unique_ptr<Members> group(uint32_t count, const ncclrun::net::Token& token = kToken) {
    return std::make_unique<Members>(count, [&](Member& member) {
      OK(makeAggregatorNetwork({.servers = {server->handle()}, .token = token, .address = "127.0.0.1"},
                               member.collective));
    });
  }
};

void everyTypeAndOperatorIsTheSerialReduction() {
  constexpr size_t kCounts[] = {1, 3, 1000, 40'000};
  Job job(4);
  everyReductionIsTheSerialOne(*job.members, kTypes, kOperators, kCounts);
}
void severalChunks() {
  constexpr size_t kCounts[] = {65'536, 65'537, 3'000'000};
  constexpr ncclDataType_t kFloat[] = {ncclFloat32};
  constexpr ncclRedOp_t kSum[] = {ncclSum};
  Job job(4);
  everyReductionIsTheSerialOne(*job.members, kFloat, kSum, kCounts);
}
void oneMemberAlone() {
  constexpr size_t kCounts[] = {1, 100'000};
  Job job(1);
  everyReductionIsTheSerialOne(*job.members, kTypes, kOperators, kCounts);
}
void eightAreUnderWay() {
  Job job(3);
  eightCollectivesAreUnderWay(*job.members);
}
void wrongArguments() {
  Job job(2);
  wrongArgumentsAreRefused(*job.members);
}

}  // namespace

int main() {
  bool isFine = true;
#define RUN(body) isFine &= scenario(#body, body)
  RUN(everyTypeAndOperatorIsTheSerialReduction);
  RUN(severalChunks);
  RUN(oneMemberAlone);
  RUN(eightAreUnderWay);
  RUN(wrongArguments);
  return isFine ? 0 : 1;
}
