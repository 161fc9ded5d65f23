// Members of a group and aggregators in processes of their own, which can be killed and stopped.
#pragma once
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/clock.h"
#include "base/element.h"
#include "net/aggregator_job.h"
#include "net/contribution.h"

namespace ncclrun::test {

// What the processes of a scenario share.
struct Shared {
  std::atomic<uint64_t> diedAt{0};  // nanoseconds; 0: nobody has
  std::atomic<uint32_t> complete{0};
  std::atomic<pid_t> stopped{0};
};
inline Shared& shared() {
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
  net::Handle handle = {};

  explicit ServerProcess(const aggregator::ServerLimits& limits = {}) {
    int ends[2];
    EXPECT(pipe(ends) == 0);
    process = fork();
    if (process == 0) {
      alarm(60);
      std::unique_ptr<aggregator::Aggregator> server;
      OK(aggregator::Aggregator::make({.address = "127.0.0.1", .token = kJobToken, .limits = limits}, server));
      const net::Handle own = server->handle();
      EXPECT(write(ends[1], own.data(), own.size()) == ssize_t(own.size()));
      for (;;) pause();
    }
    EXPECT(read(ends[0], handle.data(), handle.size()) == ssize_t(handle.size()));
    close(ends[0]);
    close(ends[1]);
  }
  ~ServerProcess() {
    if (process < 0) return;
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
  }
  ServerProcess(ServerProcess&& other) noexcept : process(std::exchange(other.process, -1)), handle(other.handle) {}
  ServerProcess& operator=(ServerProcess&&) = delete;
};

// One reduction that is repeated: its memory, and what it must yield.
struct Repeated {
  size_t count;
  GroupMemory from, to;
  std::vector<char> expected;

  Repeated(const Member& member, ncclDataType_t type, size_t elements)
      : count(elements),
        from(*member.group, elements * elementBytes(type)),
        to(*member.group, elements * elementBytes(type)),
        expected(serial(type, member.members, elements, ncclSum)) {
    fillContribution(type, from.bytes.data(), member.rank, elements);
  }
};

// Reductions one after the other until one fails; each that does not is right. All is prepared before, so that nothing
// keeps a member from hearing of a failure at once.
inline Status reduceUntilFailure(Member& member, ncclDataType_t type, const std::function<void()>& beforeEachStep) {
  std::vector<std::unique_ptr<Repeated>> reductions;
  for (const size_t count : {1, 70'000, 700'000, 3, 300'000})
    reductions.push_back(std::make_unique<Repeated>(member, type, count));
  for (size_t i = 0;; i++) {
    auto& [count, from, to, expected] = *reductions[i % reductions.size()];
    net::Request* request = nullptr;
    beforeEachStep();
    if (Status status = member.group->iallreduce(from.buffer(), to.buffer(), count, {type, ncclSum}, request);
        !status.ok())
      return status;
    for (bool done = false; !done;) {
      beforeEachStep();
      if (Status status = member.group->test(request, done); !status.ok()) return status;
      if (!done) std::this_thread::yield();
    }
    EXPECT(std::memcmp(to.bytes.data(), expected.data(), expected.size()) == 0);
    std::fill(to.bytes.begin(), to.bytes.end(), char(0));
    shared().complete++;
  }
}

// Runs `body` for each member in a process of its own; all of them must end well but `killed`.
inline void inProcesses(Members& members, uint32_t killed, const std::function<void(Member&)>& body) {
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

[[noreturn]] inline void die() {
  shared().diedAt = nowNanoseconds();
  kill(getpid(), SIGKILL);
  std::abort();
}

inline void expectLossWithinASecond(const Status& status, const std::string& words) {
  const uint64_t diedAt = shared().diedAt;
  EXPECT(diedAt != 0);
  EXPECT(nowNanoseconds() - diedAt < 1'000'000'000);
  REFUSED(status, ncclRemoteError, words);
}

// Another process sends the aggregator a signal once the members have so many results.
inline pid_t signalLater(const ServerProcess& server, int signal, uint32_t results) {
  const pid_t process = fork();
  if (process != 0) return process;
  alarm(25);
  while (shared().complete < results) std::this_thread::yield();
  shared().diedAt = nowNanoseconds();
  kill(server.process, signal);
  std::_Exit(0);
}

}  // namespace ncclrun::test
