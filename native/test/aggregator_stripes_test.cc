// Groups whose collectives several aggregators serve in turn.
#include "net/aggregator_job.h"
#include "net/contribution.h"

using namespace ncclrun::test;
using ncclrun::Status;
using ncclrun::net::Request;

namespace {

constexpr uint32_t kMembers = 4;
constexpr ncclDataType_t kTypes[] = {ncclFloat32, ncclInt64, ncclBfloat16};
constexpr ncclRedOp_t kOperators[] = {ncclSum, ncclMax, ncclAvg};
constexpr size_t kCounts[] = {1, 1000, 200'000};

struct StripedJob {
  Aggregators servers;
  std::unique_ptr<Members> members;

  explicit StripedJob(uint32_t count) : servers(count), members(membersAt(servers.handles, kMembers)) {}
};

void everyReductionIsTheSerialOneThroughThree() {
  StripedJob job(3);
  everyReductionIsTheSerialOne(*job.members, kTypes, kOperators, kCounts);
  for (const auto& server : job.servers.all) EXPECT(server->figures().mostChunkBytes > 0);
}
void eightAreUnderWayThroughThree() {
  StripedJob job(3);
  eightCollectivesAreUnderWay(*job.members);
}
void moreAggregatorsThanCollectivesCanBeUnderWay() {
  StripedJob job(11);
  everyReductionIsTheSerialOne(*job.members, kTypes, kOperators, kCounts);
}
// Connected, and everybody has reduced once.
void begin(StripedJob& job) {
  job.members->each([&](Member& member) {
    OK(member.connect(job.members->handles));
    reduceAndCompare(member, 10, ncclFloat32, ncclSum);
  });
}
// Of three calls, of which each aggregator gets one.
Status outcomeOf(Member& member) {
  GroupMemory from(*member.group, 40), to(*member.group, 40);
  Status status;
  for (int i = 0; i < 3 && status.ok(); i++) status = member.await(post(member, from.buffer(), to.buffer(), 10));
  return status;
}
void theLossOfOneAggregatorEndsTheGroup() {
  StripedJob job(3);
  begin(job);
  job.servers.all[1].reset();
  job.members->each([](Member& member) {
    REFUSED(outcomeOf(member), ncclRemoteError, "the aggregator at 127.0.0.1 port ");
    member.group.reset();
  });
}
void whoeverNeedsAMemberThatHasLeftLearnsIt() {
  StripedJob job(3);
  begin(job);
  job.members->all[2].group.reset();
  job.members->each([](Member& member) {
    if (member.rank != 2) REFUSED(outcomeOf(member), ncclInvalidUsage, "rank 2 (127.0.0.1 port ");
    member.group.reset();
  });
}

}  // namespace

int main() {
  bool isFine = true;
#define RUN(body) isFine &= scenario(#body, body)
  RUN(everyReductionIsTheSerialOneThroughThree);
  RUN(eightAreUnderWayThroughThree);
  RUN(moreAggregatorsThanCollectivesCanBeUnderWay);
  RUN(theLossOfOneAggregatorEndsTheGroup);
  RUN(whoeverNeedsAMemberThatHasLeftLearnsIt);
  return isFine ? 0 : 1;
}
