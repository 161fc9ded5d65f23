// Members of a group, and the aggregator itself, are killed or stopped at any moment: everybody else has an error with
// their name in under a second, and no wrong sum.
#include <signal.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>

#include "base/clock.h"
#include "net/aggregator_job.h"
#include "net/contribution.h"

using namespace ncclrun::test;
using ncclrun::nowNanoseconds;
using ncclrun::Status;
using ncclrun::aggregator::Aggregator;
using ncclrun::aggregator::ServerLimits;
using ncclrun::net::Handle;
using ncclrun::net::Request;

namespace {

constexpr uint32_t kMembers = 4;
constexpr size_t kCounts[] = {1, 70'000, 1'500'000, 3, 300'000};

// What the processes of a scenario share.
struct Shared {
  std::atomic<uint64_t> diedAt{0};  // nanoseconds; 0: nobody has
  std::atomic<uint32_t> complete{0};
  std::atomic<pid_t> stopped{0};
};
Shared& shared() {
  static Shared* const memory = [] {
    void* const address = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT(address != MAP_FAILED);
    return new (address) Shared;
  }();
  return *memory;
}

// An aggregator in a process of its own.
struct ServerProcess {
  pid_t process = -1;
  Handle handle = {};

  explicit ServerProcess(const ServerLimits& limits = {}) {
    int ends[2];
    EXPECT(pipe(ends) == 0);
    process = fork();
    if (process == 0) {
      alarm(60);
      std::unique_ptr<Aggregator> server;
      OK(Aggregator::make({.address = "127.0.0.1", .token = kJobToken, .limits = limits}, server));
      const Handle own = server->handle();
      EXPECT(write(ends[1], own.data(), own.size()) == ssize_t(own.size()));
      for (;;) pause();
    }
    EXPECT(read(ends[0], handle.data(), handle.size()) == ssize_t(handle.size()));
    close(ends[0]);
    close(ends[1]);
  }
  ~ServerProcess() {
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
  }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
};

// Reductions one after the other until one fails; each that does not is right.
Status reduceUntilFailure(Member& member, const std::function<void()>& beforeEachStep) {
  for (size_t i = 0;; i++) {
    const size_t count = kCounts[i % std::size(kCounts)];
    GroupMemory from(*member.group, count * 4), to(*member.group, count * 4);
    fillContribution(ncclFloat32, from.bytes.data(), member.rank, count);
    Request* request = nullptr;
    beforeEachStep();
    if (Status status = member.group->iallreduce(from.buffer(), to.buffer(), count, {}, request); !status.ok())
      return status;
    for (bool done = false; !done;) {
      beforeEachStep();
      if (Status status = member.group->test(request, done); !status.ok()) return status;
      if (!done) std::this_thread::yield();
    }
    const std::vector<char> expected = serial(ncclFloat32, member.members, count, ncclSum);
    EXPECT(std::memcmp(to.bytes.data(), expected.data(), expected.size()) == 0);
    shared().complete++;
  }
}

// Runs `body` for each member in a process of its own; all of them must end well but `killed`.
void inProcesses(Members& members, uint32_t killed, const std::function<void(Member&)>& body) {
  std::vector<pid_t> processes;
  for (Member& member : members.all) {
    processes.push_back(fork());
    if (processes.back() != 0) continue;
    alarm(25);
    body(member);
    std::_Exit(0);
  }
  for (uint32_t rank = 0; rank < processes.size(); rank++) {
    int status = 0;
    EXPECT(waitpid(processes[rank], &status, 0) == processes[rank]);
    if (rank == killed) {
      EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    } else if (status != 0) {
      failTest(__FILE__, __LINE__, "rank " + std::to_string(rank) + " ended with " + std::to_string(status));
    }
  }
}

[[noreturn]] void die() {
  shared().diedAt = nowNanoseconds();
  kill(getpid(), SIGKILL);
  std::abort();
}

void expectLossWithinASecond(const Status& status, const std::string& words) {
  const uint64_t diedAt = shared().diedAt;
  EXPECT(diedAt != 0);
  EXPECT(nowNanoseconds() - diedAt < 1'000'000'000);
  REFUSED(status, ncclRemoteError, words);
}

// Member 2 is killed before its `step`-th call.
void killMemberAt(int step) {
  const ServerProcess server;
  const auto members = membersAt(server.handle, kMembers);
  shared().diedAt = 0;
  inProcesses(*members, 2, [&](Member& member) {
    OK(member.connect(members->handles));
    int calls = 0;
    const Status status = reduceUntilFailure(member, [&] {
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
    const Status status = reduceUntilFailure(member, [&] {
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

// Another process sends the aggregator a signal once the members have so many results.
pid_t signalLater(const ServerProcess& server, int signal, uint32_t results) {
  const pid_t process = fork();
  if (process != 0) return process;
  alarm(25);
  while (shared().complete < results) std::this_thread::yield();
  shared().diedAt = nowNanoseconds();
  kill(server.process, signal);
  std::_Exit(0);
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
      const Status status = reduceUntilFailure(member, [] {});
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
    REFUSED(reduceUntilFailure(member, [] {}), ncclRemoteError, "it has been silent for 1 s");
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
