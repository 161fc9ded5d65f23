// Members of a group, and the aggregator itself, are killed or stopped at any moment: everybody else has an error with
// their name in under a second, and no wrong sum.
#include "net/aggregator_processes.h"

using namespace ncclrun::test;
using ncclrun::nowNanoseconds;
using ncclrun::Status;
using ncclrun::net::Request;

namespace {

constexpr uint32_t kMembers = 4;

// Member 2 is killed before its `step`-th call.
void killMemberAt(int step) {
  const ServerProcess server;
  const auto members = membersAt(server.handle, kMembers);
  shared().diedAt = 0;
  inProcesses(*members, 2, [&](Member& member) {
    OK(member.connect(members->handles));
    int calls = 0;
    const Status status = reduceUntilFailure(member, ncclFloat32, [&] {
      if (member.rank == 2 && calls++ == step) die();
    });
    expectLossWithinASecond(status, "rank 2 (127.0.0.1 port ");
  });
}
void aMemberIsKilledAtAnyMoment() {
  for (const int step : {0, 1, 2, 3, 5, 8, 13, 30, 80, 200, 500, 1500}) killMemberAt(step);
}

void aStoppedMemberIsNamed() {
  const ServerProcess server({.silenceTimeout = 1'000'000'000});
  const auto members = membersAt(server.handle, kMembers, 1'000'000'000);
  inProcesses(*members, 2, [&](Member& member) {
    OK(member.connect(members->handles));
    int calls = 0;
    const Status status = reduceUntilFailure(member, ncclFloat32, [&] {
      if (member.rank == 2 && calls++ == 30) {
        shared().diedAt = nowNanoseconds();
        shared().stopped = getpid();
        raise(SIGSTOP);
      }
    });
    REFUSED(status, ncclRemoteError, "rank 2 (127.0.0.1 port ");
    REFUSED(status, ncclRemoteError, "has been silent for 1 s");
    const uint64_t took = nowNanoseconds() - shared().diedAt;
    EXPECT(took > 500'000'000 && took < 3'000'000'000);
    if (member.rank == 0) kill(shared().stopped, SIGKILL);
  });
}

// It does not poll for more than twice the timeout, in which others wait for its contribution.
void aSlowMemberIsNoError() {
  const ServerProcess server({.silenceTimeout = 1'000'000'000});
  const auto members = membersAt(server.handle, kMembers, 1'000'000'000);
  inProcesses(*members, kMembers, [&](Member& member) {
    OK(member.connect(members->handles));
    reduceAndCompare(member, 1000, ncclFloat32, ncclSum);
    const uint64_t until = nowNanoseconds() + 2'500'000'000;
    while (member.rank == 1 && nowNanoseconds() < until) std::this_thread::yield();
    reduceAndCompare(member, 1'000'000, ncclFloat32, ncclSum);
    member.group.reset();
  });
}

// It has contributed all that the window allows, and takes no results for more than twice the timeout: its socket is
// full.
void aMemberThatTakesNoResultsForLongIsNoError() {
  const ServerProcess server({.silenceTimeout = 1'000'000'000});
  const auto members = membersAt(server.handle, kMembers, 1'000'000'000);
  const auto reduceSlowly = [](Member& member) {
    constexpr size_t kCount = 4'000'000;
    GroupMemory from(*member.group, kCount * 4), to(*member.group, kCount * 4);
    fillContribution(ncclInt32, from.bytes.data(), member.rank, kCount);
    Request* const request = post(member, from.buffer(), to.buffer(), kCount, ncclInt32);
    const uint64_t until = nowNanoseconds() + 2'500'000'000;
    while (member.rank == 1 && nowNanoseconds() < until) std::this_thread::yield();
    OK(member.await(request));
    const std::vector<char> expected = serial(ncclInt32, member.members, kCount, ncclSum);
    EXPECT(std::memcmp(to.bytes.data(), expected.data(), expected.size()) == 0);
  };
  inProcesses(*members, kMembers, [&](Member& member) {
    OK(member.connect(members->handles));
    reduceSlowly(member);
    member.group.reset();
  });
}

void theAggregatorIsKilled() {
  for (const uint32_t results : {0, 1, 3, 5, 11, 40}) {
    const ServerProcess server;
    const auto members = membersAt(server.handle, kMembers);
    shared().complete = 0;
    shared().diedAt = 0;
    const pid_t killer = signalLater(server, SIGKILL, results);
    inProcesses(*members, kMembers, [&](Member& member) {
      // It may be gone before this member has connected, which then tries for three seconds.
      const Status joined = member.connect(members->handles);
      if (!joined.ok()) return REFUSED(joined, ncclRemoteError, "127.0.0.1 port ");
      const Status status = reduceUntilFailure(member, ncclFloat32, [] {});
      expectLossWithinASecond(status, "the aggregator at 127.0.0.1 port ");
    });
    EXPECT(waitpid(killer, nullptr, 0) == killer);
  }
}

void theAggregatorIsStopped() {
  const ServerProcess server;
  const auto members = membersAt(server.handle, kMembers, 1'000'000'000);
  shared().complete = 0;
  const pid_t stopper = signalLater(server, SIGSTOP, 12);
  inProcesses(*members, kMembers, [&](Member& member) {
    OK(member.connect(members->handles));
    REFUSED(reduceUntilFailure(member, ncclFloat32, [] {}), ncclRemoteError, "it has been silent for 1 s");
    const uint64_t took = nowNanoseconds() - shared().diedAt;
    EXPECT(took > 500'000'000 && took < 3'000'000'000);
  });
  EXPECT(waitpid(stopper, nullptr, 0) == stopper);
}

}  // namespace

int main() {
  bool isFine = true;
  shared();  // before any process is forked
#define RUN(body) isFine &= scenario(#body, body)
  RUN(aMemberIsKilledAtAnyMoment);
  RUN(aStoppedMemberIsNamed);
  RUN(aSlowMemberIsNoError);
  RUN(aMemberThatTakesNoResultsForLongIsNoError);
  RUN(theAggregatorIsKilled);
  RUN(theAggregatorIsStopped);
  return isFine ? 0 : 1;
}
