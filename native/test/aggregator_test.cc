// The reduction server, in this process, and members of groups, each in a thread of its own.
#include <chrono>
#include <cstring>

#include "base/clock.h"
#include "base/limits.h"
#include "net/aggregator_job.h"
#include "net/contribution.h"

using namespace ncclrun::test;
using ncclrun::Status;
using ncclrun::aggregator::makeAggregatorNetwork;
using ncclrun::aggregator::ServerLimits;
using ncclrun::net::Request;

namespace {

void everyTypeAndOperatorIsTheSerialReduction() {
  constexpr size_t kCounts[] = {1, 3, 1000, 40'000};
  AggregatorJob job(4);
  everyReductionIsTheSerialOne(*job.members, kAllTypes, kAllOperators, kCounts);
}
void severalChunks() {
  constexpr size_t kCounts[] = {65'536, 65'537, 3'000'000};
  constexpr ncclDataType_t kFloat[] = {ncclFloat32};
  constexpr ncclRedOp_t kSum[] = {ncclSum};
  AggregatorJob job(4);
  everyReductionIsTheSerialOne(*job.members, kFloat, kSum, kCounts);
}
void oneMemberAlone() {
  constexpr size_t kCounts[] = {1, 100'000};
  AggregatorJob job(1);
  everyReductionIsTheSerialOne(*job.members, kAllTypes, kAllOperators, kCounts);
}
void sixteenMembers() {
  constexpr size_t kCounts[] = {1, 70'000};
  constexpr ncclDataType_t kFloats[] = {ncclFloat16, ncclFloat32};
  AggregatorJob job(16);
  everyReductionIsTheSerialOne(*job.members, kFloats, kAllOperators, kCounts);
}
void eightAreUnderWay() {
  AggregatorJob job(3);
  eightCollectivesAreUnderWay(*job.members);
}
void wrongArguments() {
  AggregatorJob job(2);
  wrongArgumentsAreRefused(*job.members);
  Member& member = job.members->all[0];
  job.members->handles[1] = {};
  REFUSED(member.listener->connect(job.members->handles, 0, member.group), ncclInvalidArgument,
          "a member's handle is not one of this network");
}
void whatIsNotReducedIsRefused() {
  AggregatorJob job(1);
  job.members->connected([](Member& member) {
    GroupMemory memory(*member.group, 64);
    Request* request = nullptr;
    const auto reduce = [&](size_t count, ncclDataType_t type, ncclRedOp_t op) {
      return member.group->iallreduce(memory.buffer(), memory.buffer(32), count, {type, op}, request);
    };
    EXPECT(!member.collective->canReduce({ncclDataType_t(ncclNumTypes), ncclSum}));
    EXPECT(!member.collective->canReduce({ncclInt8, ncclNumOps}) && !member.collective->canGather());
    REFUSED(reduce(1, ncclDataType_t(ncclNumTypes), ncclSum), ncclInvalidUsage, "does not reduce type 12");
    REFUSED(reduce(1, ncclInt8, ncclNumOps), ncclInvalidUsage, "does not reduce type 0 by operator 5");
    REFUSED(reduce(0, ncclInt32, ncclSum), ncclInvalidArgument, "not 0 elements of 4 bytes");
    REFUSED(reduce(SIZE_MAX / 2, ncclInt32, ncclSum), ncclInvalidArgument, "elements of 4 bytes");
    REFUSED(member.group->iallgather(memory.buffer(), memory.buffer(), {}, request), ncclInvalidUsage,
            "neither gathers");
    ncclrun::net::Registration registration;
    REFUSED(member.group->registerMemory({memory.bytes.data(), 8, ncclrun::net::MemoryType::device}, registration),
            ncclInvalidUsage, "host memory only");
    reduceAndCompare(member, 3, ncclInt32, ncclSum);
  });
}

// What a member's next reduction of `count` elements answers.
Status outcomeOf(Member& member, size_t count, ncclDataType_t type = ncclFloat32, ncclRedOp_t op = ncclSum) {
  GroupMemory from(*member.group, count * 8), to(*member.group, count * 8);
  Request* request = nullptr;
  const Status status = member.group->iallreduce(from.buffer(), to.buffer(), count, {type, op}, request);
  return status.ok() ? member.await(request) : status;
}

void expectMismatch(const std::function<Status(Member&)>& call, const std::string& words) {
  AggregatorJob job(3);
  job.members->each([&](Member& member) {
    OK(member.connect(job.members->handles));
    reduceAndCompare(member, 100, ncclInt32, ncclSum);
    const Status status = call(member);
    REFUSED(status, ncclInvalidUsage, "the members of the group make different calls: rank ");
    REFUSED(status, ncclInvalidUsage, words);
    REFUSED(outcomeOf(member, 1), ncclInvalidUsage, "make different calls");
  });
}
void differentCallsEndTheGroup() {
  expectMismatch([](Member& member) { return outcomeOf(member, member.rank == 1 ? 8 : 9); },
                 "collective 1: 32 bytes of type 7 by operator 0");
  expectMismatch([](Member& member) { return outcomeOf(member, 8, ncclFloat32, member.rank == 2 ? ncclMax : ncclMin); },
                 "32 bytes of type 7 by operator 2");
  expectMismatch([](Member& member) { return outcomeOf(member, 8, member.rank == 0 ? ncclInt32 : ncclFloat32); },
                 "32 bytes of type 2 by operator 0");
}

void whoeverNeedsAMemberThatHasLeftLearnsIt() {
  AggregatorJob job(3);
  job.members->each([&](Member& member) {
    OK(member.connect(job.members->handles));
    reduceAndCompare(member, 100'000, ncclFloat32, ncclSum);
    if (member.rank != 1) REFUSED(outcomeOf(member, 1), ncclInvalidUsage, "rank 1 (127.0.0.1 port ");
    member.group.reset();
  });
}

// Several times, because members leave while results are on their way to others.
void membersLeaveWhenTheyAreDone() {
  AggregatorJob job(1);
  for (int round = 0; round < 20; round++) {
    const auto members = membersAt(job.server->handle(), 4);
    members->connected([](Member& member) { reduceAndCompare(member, 200'000, ncclInt32, ncclSum); });
  }
}

void aMemberThatNeverComesIsNamed() {
  AggregatorJob job(4, {.joinTimeout = 300'000'000});
  job.members->each([&](Member& member) {
    if (member.rank == 1 || member.rank == 2) return;
    REFUSED(member.connect(job.members->handles), ncclRemoteError,
            "of 4 ranks 1, 2 have not joined the group within 0.3 s");
  });
}
void aMemberThatGivesUpConnectingIsLost() {
  AggregatorJob job(2);
  Member &first = job.members->all[0], &second = job.members->all[1];
  const uint64_t until = ncclrun::nowNanoseconds() + 10'000'000'000;
  while (job.server->figures().groups == 0 && ncclrun::nowNanoseconds() < until)
    OK(first.listener->connect(job.members->handles, 0, first.group));
  first.listener.reset();
  REFUSED(second.connect(job.members->handles), ncclRemoteError, "rank 0 (127.0.0.1 port ");
}
void membersThatDisagreeAboutTheGroupNeverMeet() {
  AggregatorJob job(2, {.joinTimeout = 300'000'000});
  job.members->each([&](Member& member) {
    std::vector<ncclrun::net::Handle> handles = job.members->handles;
    if (member.rank == 1) handles.push_back(handles[0]);
    REFUSED(member.listener == nullptr ? Status{} : member.connect(handles), ncclRemoteError,
            "have not joined the group");
  });
}
void aStrangerIsNotAdmitted() {
  AggregatorJob job(1);
  const auto strangers = membersAt(job.server->handle(), 1, 20'000'000'000, {1, 2, 4});
  REFUSED(strangers->all[0].connect(strangers->handles), ncclRemoteError, "authentication failed");
  EXPECT(job.server->figures().members == 0);
}

}  // namespace

int main() {
  bool isFine = true;
#define RUN(body) isFine &= scenario(#body, body)
  RUN(everyTypeAndOperatorIsTheSerialReduction);
  RUN(severalChunks);
  RUN(oneMemberAlone);
  RUN(sixteenMembers);
  RUN(eightAreUnderWay);
  RUN(wrongArguments);
  RUN(whatIsNotReducedIsRefused);
  RUN(differentCallsEndTheGroup);
  RUN(whoeverNeedsAMemberThatHasLeftLearnsIt);
  RUN(membersLeaveWhenTheyAreDone);
  RUN(aMemberThatNeverComesIsNamed);
  RUN(aMemberThatGivesUpConnectingIsLost);
  RUN(membersThatDisagreeAboutTheGroupNeverMeet);
  RUN(aStrangerIsNotAdmitted);
  return isFine ? 0 : 1;
}
