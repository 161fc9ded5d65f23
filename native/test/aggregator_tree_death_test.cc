// Members, leaves and the root of a tree of aggregators are killed or stopped: every member has an error that says who
// is lost, and no wrong sum.
#include <algorithm>

#include "net/aggregator_processes.h"
#include "net/socket/address.h"

using namespace ncclrun::test;
using ncclrun::nowNanoseconds;
using ncclrun::Status;
using ncclrun::aggregator::ServerLimits;

namespace {

constexpr uint32_t kMembers = 7,
                   kServers = 7;  // with a fan-in of two, three levels: every server has a node of its own
constexpr uint64_t kSecond = 1'000'000'000;

struct Job {
  std::vector<ServerProcess> servers;
  std::unique_ptr<Members> members;

  explicit Job(uint64_t timeout = 20 * kSecond) {
    std::vector<ncclrun::net::Handle> handles;
    for (uint32_t i = 0; i < kServers; i++) {
      servers.emplace_back(ServerLimits{.silenceTimeout = timeout});
      handles.push_back(servers.back().handle);
    }
    members = membersAt(handles, kMembers, timeout, kJobToken, 2);
    shared().diedAt = 0;
    shared().complete = 0;
  }
};

void killMemberAt(uint32_t victim, int step) {
  const Job job;
  inProcesses(*job.members, victim, [&](Member& member) {
    OK(member.connect(job.members->handles));
    int calls = 0;
    const Status status = reduceUntilFailure(member, ncclInt32, [&] {
      if (member.rank == victim && calls++ == step) die();
    });
    expectLossWithinASecond(status, "rank " + std::to_string(victim) + " (127.0.0.1 port ");
  });
}
void aMemberIsKilledAtAnyMoment() {
  for (const uint32_t victim : {0u, 4u, 6u}) {
    for (const int step : {0, 30, 200}) killMemberAt(victim, step);
  }
}

void aStoppedMemberIsNamedToAll() {
  const Job job(kSecond);
  inProcesses(*job.members, 4, [&](Member& member) {
    OK(member.connect(job.members->handles));
    int calls = 0;
    const Status status = reduceUntilFailure(member, ncclInt32, [&] {
      if (member.rank == 4 && calls++ == 30) {
        shared().diedAt = nowNanoseconds();
        shared().stopped = getpid();
        raise(SIGSTOP);
      }
    });
    REFUSED(status, ncclRemoteError, "rank 4 (127.0.0.1 port ");
    REFUSED(status, ncclRemoteError, "has been silent for 1 s");
    const uint64_t took = nowNanoseconds() - shared().diedAt;
    EXPECT(took > kSecond / 2 && took < 3 * kSecond);
    if (member.rank == 0) kill(shared().stopped, SIGKILL);
  });
}

// It does not poll for more than twice the timeout, in which others wait for its contribution.
void aSlowMemberIsNoError() {
  const Job job(kSecond);
  inProcesses(*job.members, kMembers, [&](Member& member) {
    OK(member.connect(job.members->handles));
    reduceAndCompare(member, 1000, ncclInt32, ncclSum);
    const uint64_t until = nowNanoseconds() + 5 * kSecond / 2;
    while (member.rank == 1 && nowNanoseconds() < until) std::this_thread::yield();
    reduceAndCompare(member, 1'000'000, ncclInt32, ncclSum);
    member.group.reset();
  });
}

// A member sees its own server end, or hears of the child or the parent of an aggregator that is lost.
void expectLossOfServer(const Status& status, const ServerProcess& server) {
  EXPECT(status.code == ncclRemoteError);
  const std::string& sentence = status.sentence;
  const std::string address = ncclrun::net::decodeHandle(server.handle)->address.textWithPort();
  const bool isOwnOrParent = sentence.find("the aggregator at " + address) != std::string::npos;
  const bool isChild = sentence.find(": the aggregator of rank") != std::string::npos;
  if (!isOwnOrParent && !isChild) failTest(__FILE__, __LINE__, sentence + " does not name " + address);
}

// Whichever role of the tree a server has.
void anAggregatorIsKilled(uint32_t victim) {
  const Job job;
  const pid_t killer = signalLater(job.servers[victim], SIGKILL, 5 + 7 * victim);
  inProcesses(*job.members, kMembers, [&](Member& member) {
    OK(member.connect(job.members->handles));
    const Status status = reduceUntilFailure(member, ncclInt32, [] {});
    expectLossWithinASecond(status, "the aggregator ");
    expectLossOfServer(status, job.servers[victim]);
  });
  EXPECT(waitpid(killer, nullptr, 0) == killer);
}
// Nobody can join: those of other blocks learn that, too.
void anAggregatorIsGoneBeforeMembersConnect() {
  for (const uint32_t victim : {0u, 3u, 6u}) {
    const Job job(kSecond);
    kill(job.servers[victim].process, SIGKILL);
    inProcesses(*job.members, kMembers, [&](Member& member) {
      const uint64_t begun = nowNanoseconds();
      const Status status = member.connect(job.members->handles);
      EXPECT(status.code == ncclRemoteError);
      EXPECT(nowNanoseconds() - begun < 10 * kSecond);
    });
  }
}
void anAggregatorIsStopped(uint32_t victim) {
  const Job job(kSecond);
  const pid_t stopper = signalLater(job.servers[victim], SIGSTOP, 12);
  inProcesses(*job.members, kMembers, [&](Member& member) {
    OK(member.connect(job.members->handles));
    const Status status = reduceUntilFailure(member, ncclInt32, [] {});
    REFUSED(status, ncclRemoteError, "has been silent for 1 s");
    expectLossOfServer(status, job.servers[victim]);
    const uint64_t took = nowNanoseconds() - shared().diedAt;
    EXPECT(took > kSecond / 2 && took < 3 * kSecond);
  });
  EXPECT(waitpid(stopper, nullptr, 0) == stopper);
}

}  // namespace

int main() {
  bool isFine = true;
  shared();  // before any process is forked
#define RUN(body) isFine &= scenario(#body, body)
  RUN(aMemberIsKilledAtAnyMoment);
  RUN(aStoppedMemberIsNamedToAll);
  RUN(aSlowMemberIsNoError);
  RUN(anAggregatorIsGoneBeforeMembersConnect);
  for (uint32_t victim = 0; victim < kServers; victim++) {
    RUN([=] { anAggregatorIsKilled(victim); });
    RUN([=] { anAggregatorIsStopped(victim); });
  }
  return isFine ? 0 : 1;
}
