// What a reduction at an aggregator costs: one in a process of its own on the first core, and the members of a group in one
// thread on the second. Prints the bytes, how long a reduction takes and how much processor time of the server, and the
// rates of both per byte that a member contributes.
//
//   aggregator_reductions BYTES ROUNDS UNDERWAY [MEMBERS [sum|avg]]    float, 4 members, sum
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "aggregator/aggregator.h"
#include "aggregator/aggregator_network.h"
#include "base/clock.h"

using namespace ncclrun;

namespace {

void must(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "aggregator_reductions: %s\n", status.sentence.c_str());
  std::exit(1);
}
void pinTo(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  sched_setaffinity(0, sizeof cores, &cores);
}

struct Served {
  pid_t process = -1;
  net::Handle handle = {};
  clockid_t clock = 0;

  Served() {
    int ends[2];
    if (pipe(ends) != 0) std::exit(1);
    process = fork();
    if (process == 0) {
      pinTo(0);
      std::unique_ptr<aggregator::Aggregator> server;
      must(aggregator::Aggregator::make({.address = "127.0.0.1"}, server));
      const net::Handle own = server->handle();
      if (write(ends[1], own.data(), own.size()) != ssize_t(own.size())) std::exit(1);
      for (;;) pause();
    }
    if (read(ends[0], handle.data(), handle.size()) != ssize_t(handle.size())) std::exit(1);
    clock_getcpuclockid(process, &clock);
  }
  ~Served() {
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
  }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;
  uint64_t processorTime() const {
    timespec time{};
    clock_gettime(clock, &time);
    return uint64_t(time.tv_sec) * 1'000'000'000 + uint64_t(time.tv_nsec);
  }
};

struct Member {
  std::unique_ptr<net::CollectiveNetwork> network;
  std::unique_ptr<net::CollectiveListener> listener;
  std::unique_ptr<net::CollectiveGroup> group;
  std::vector<float> from, to;
  std::vector<net::Request*> requests;  // in order
  long begun = 0, done = 0;
};

void connect(std::vector<Member>& members, const Served& server) {
  std::vector<net::Handle> handles(members.size());
  for (size_t rank = 0; rank < members.size(); rank++) {
    must(aggregator::makeAggregatorNetwork({.servers = {server.handle}, .address = "127.0.0.1"}, members[rank].network));
    must(members[rank].network->listen(0, handles[rank], members[rank].listener));
  }
  for (size_t left = members.size(); left > 0;) {
    for (size_t rank = 0; rank < members.size(); rank++) {
      Member& member = members[rank];
      if (member.group != nullptr) continue;
      must(member.listener->connect(handles, uint32_t(rank), member.group));
      left -= member.group != nullptr;
    }
  }
}

void reduce(std::vector<Member>& members, size_t count, long rounds, long underWay, ncclRedOp_t op) {
  for (Member& member : members) member.begun = member.done = 0;
  for (bool any = true; any;) {
    any = false;
    for (Member& member : members) {
      while (member.begun < rounds && member.begun - member.done < underWay) {
        net::Request* request = nullptr;
        must(member.group->iallreduce({member.from.data(), {}}, {member.to.data(), {}}, count, {ncclFloat32, op}, request));
        if (request == nullptr) break;
        member.requests.push_back(request);
        member.begun++;
      }
      bool isDone = member.done < rounds;
      while (isDone && !member.requests.empty()) {
        must(member.group->test(member.requests.front(), isDone));
        if (!isDone) break;
        member.requests.erase(member.requests.begin());
        member.done++;
      }
      any = any || member.done < rounds;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const size_t bytes = std::stoull(argv[1]);
  const long rounds = std::stol(argv[2]), underWay = std::stol(argv[3]);
  const ncclRedOp_t op = argc > 5 && std::string(argv[5]) == "avg" ? ncclAvg : ncclSum;
  const Served server;
  pinTo(1);
  std::vector<Member> members(argc > 4 ? std::stoul(argv[4]) : 4);
  for (Member& member : members) {
    member.from.assign(bytes / sizeof(float), 1);
    member.to.resize(bytes / sizeof(float));
  }
  connect(members, server);
  reduce(members, bytes / sizeof(float), rounds / 4 + 1, underWay, op);  // outside the time taken
  const uint64_t begun = nowNanoseconds(), spent = server.processorTime();
  reduce(members, bytes / sizeof(float), rounds, underWay, op);
  const double each = double(nowNanoseconds() - begun) / double(rounds);
  const double served = double(server.processorTime() - spent) / double(rounds);
  std::printf("%zu bytes: %.1f us, server %.1f us, %.0f MB/s, server %.0f MB/s\n", bytes, each / 1e3, served / 1e3,
              double(bytes) * 1e3 / each, double(bytes) * 1e3 / served);
  for (Member& member : members) member.group.reset();
  return 0;
}
