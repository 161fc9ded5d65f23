// How operations end when something breaks: aborts, dead peers, strangers at the door.
#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <thread>

#include "base/clock.h"
#include "net/socket/wire.h"
#include "plan/segment.h"
#include "support/check.h"
#include "support/world.h"

using namespace ncclrun;
using namespace ncclrun::test;
using plan::Algorithm;

namespace {

// Longer than any wake-up on a loaded machine, far shorter than a wait that was forgotten.
constexpr uint64_t kSoon = 2'000'000'000;

PlanSpec twoHosts(const plan::VariantRecord& variant) {
  PlanSpec spec = oneHost(2, variant);
  spec.hostOf = {0, 1};
  return spec;
}

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

void waitUntilAsleep(Rank& rank) {
  while (std::atomic_ref(rank.telemetry.state).load() != uint32_t(ncclrunStateWaiting)) std::this_thread::yield();
}

}  // namespace

// Rank 2 never calls: the others wait for it, whatever the algorithm, until the abort word ends them.
TEST(the_abort_word_ends_every_wait) {
  for (uint64_t spin : {uint64_t(0), uint64_t(1'000'000'000)}) {
    for (const auto& how : {variant(Algorithm::directOneShot, 1, 4096), variant(Algorithm::directTwoShot, 1, 4096),
                            variant(Algorithm::ring, 2, 4096)}) {
      PlanSpec spec = oneHost(3, how);
      spec.rings = {{0, 1, 2}, {2, 1, 0}};
      spec.spinNanoseconds = spin;
      World world(spec);
      std::atomic<uint32_t> begun{0};
      std::atomic<uint64_t> raisedAt{0};
      world.run([&](Rank& me) {
        std::vector<float> data(100000);
        if (me.number() == 2) {
          while (begun < 2) std::this_thread::yield();
          raisedAt = nowNanoseconds();
          world.raiseAbort(0, ncclRemoteError, 2, "rank 2 on host h1 was killed by signal 9");
          return;
        }
        EXPECT(me.enqueue({allReduceOf(data.data(), data.data(), data.size())}) == ncclSuccess);
        EXPECT(me.enqueue({allReduceOf(data.data(), data.data(), data.size())}) == ncclSuccess);
        if (spin == 0) waitUntilAsleep(me);
        begun++;
        EXPECT(me.synchronize() == ncclRemoteError);
        EXPECT(nowNanoseconds() - raisedAt < kSoon);
        EXPECT(contains(lastError(), "killed by signal 9"));
        EXPECT(me.path().asyncError().code == ncclRemoteError);
        EXPECT(me.enqueue({allReduceOf(data.data(), data.data(), 1)}) == ncclRemoteError);
        EXPECT(result(me.path().nodeBarrier()) == ncclRemoteError);
      });
    }
  }
}

TEST(an_abort_from_another_thread_ends_operations_and_node_barrier) {
  PlanSpec spec = oneHost(2, variant(Algorithm::ring, 1, 4096));
  spec.spinNanoseconds = 0;
  World world(spec);
  const auto lonely = world.join(0);
  std::vector<float> data(1000);
  EXPECT(lonely->enqueue({allReduceOf(data.data(), data.data(), data.size())}) == ncclSuccess);
  waitUntilAsleep(*lonely);
  EXPECT(std::atomic_ref(lonely->telemetry.waitingFor).load() == 1);
  ncclResult_t barrier = ncclSuccess;
  std::thread other([&] { barrier = result(lonely->path().nodeBarrier()); });
  lonely->path().abort({ncclInvalidUsage, "the program aborted the communicator"}, FailureScope::alone);
  EXPECT(lonely->synchronize() == ncclInvalidUsage);
  EXPECT(contains(lastError(), "the program aborted"));
  other.join();
  EXPECT(barrier == ncclInvalidUsage);
}

// What a wait costs is measured over a while in which nothing happens: polling has ended, so next to nothing.
TEST(a_long_wait_burns_no_core) {
  for (const auto& spec :
       {oneHost(2, variant(Algorithm::directOneShot, 1, 4096)), twoHosts(variant(Algorithm::ring, 1, 4096))}) {
    World world(spec);
    const auto lonely = world.join(0);
    float value = 1;
    EXPECT(lonely->enqueue({allReduceOf(&value, &value, 1)}) == ncclSuccess);
    waitUntilAsleep(*lonely);
    timespec before{}, after{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    const int64_t spent = (after.tv_sec - before.tv_sec) * 1'000'000'000 + after.tv_nsec - before.tv_nsec;
    EXPECT_MORE(spent < 10'000'000, std::to_string(spent) + " ns of 100 ms");
    lonely->path().abort({ncclInvalidUsage, "enough"}, FailureScope::alone);
    EXPECT(lonely->synchronize() == ncclInvalidUsage);
  }
}

TEST(a_communicator_may_be_destroyed_during_an_operation) {
  World world(oneHost(2, variant(Algorithm::ring, 1, 4096)));
  auto lonely = world.join(0);
  std::vector<float> data(1000);
  for (int i = 0; i < 3; i++)
    EXPECT(lonely->enqueue({allReduceOf(data.data(), data.data(), data.size())}) == ncclSuccess);
  lonely.reset();
}

TEST(a_killed_peer_behind_a_socket_is_a_remote_error) {
  for (const auto& how : {variant(Algorithm::ring, 1, 4096), variant(Algorithm::directOneShot, 1, 4096)}) {
    World world(twoHosts(how));
    int ready[2];
    EXPECT(pipe(ready) == 0);
    const pid_t child = fork();
    if (child == 0) {
      const auto me = world.join(1);
      me->connect();
      float data = 1;
      me->allReduce(&data, &data, 1);
      (void)!write(ready[1], "x", 1);
      for (;;) pause();
    }
    const auto me = world.join(0);
    EXPECT(me->connect() == ncclSuccess);
    float data = 1;
    EXPECT(me->allReduce(&data, &data, 1) == ncclSuccess && data == 2);
    char byte;
    EXPECT(read(ready[0], &byte, 1) == 1);
    EXPECT(me->enqueue({allReduceOf(&data, &data, 1)}) == ncclSuccess);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    EXPECT(me->synchronize() == ncclRemoteError);
    EXPECT_MORE(contains(lastError(), "rank 1 on host h2"), lastError());
    close(ready[0]);
    close(ready[1]);
  }
}

TEST(an_idle_communicator_notices_a_killed_peer) {
  World world(twoHosts(variant(Algorithm::ring, 1, 4096)));
  const pid_t child = fork();
  if (child == 0) {
    const auto me = world.join(1);
    me->connect();
    for (;;) pause();
  }
  const auto me = world.join(0);
  EXPECT(me->connect() == ncclSuccess);
  EXPECT(me->path().asyncError().ok());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  while (me->path().asyncError().ok()) std::this_thread::yield();
  EXPECT(me->path().asyncError().code == ncclRemoteError);
}

TEST(a_peer_that_left_in_order_is_an_error_only_for_ranks_that_wait_for_it) {
  World world(twoHosts(variant(Algorithm::ring, 1, 4096)));
  auto one = world.join(0), two = world.join(1);
  ncclResult_t connected = ncclInProgress;
  std::thread other([&] { connected = two->connect(); });
  EXPECT(one->connect() == ncclSuccess);
  other.join();
  EXPECT(connected == ncclSuccess);
  two.reset();
  EXPECT(one->path().asyncError().ok());
  float data = 1;
  EXPECT(one->allReduce(&data, &data, 1) == ncclInvalidUsage);
  EXPECT_MORE(contains(lastError(), "which rank 1 on host h2 did not before"), lastError());
}

// The second call of rank 1 waits for rank 2, which calls nothing: what rank 0 sends meanwhile tells it that they
// differ.
TEST(a_sleeping_rank_detects_the_differing_call_of_a_peer_it_does_not_wait_for) {
  PlanSpec spec = oneHost(3, variant(Algorithm::directOneShot, 1, 4096));
  spec.hostOf = {0, 1, 2};
  spec.spinNanoseconds = 0;
  for (int round = 0; round < 20; round++) {
    World world(spec);
    std::atomic<bool> asleep{false}, told{false}, sent{false};
    world.run([&](Rank& me) {
      float value = 1;
      EXPECT_MORE(me.allReduce(&value, &value, 1) == ncclSuccess, lastError());
      Operation broadcast = allReduceOf(&value, &value, 1);
      broadcast.collective = plan::Collective::broadcast;
      broadcast.peer = me.number() == 0 ? 0 : 2;
      broadcast.hashed = 2;
      broadcast.hash = broadcast.peer + 1;
      if (me.number() == 1) {
        EXPECT(me.enqueue({broadcast}) == ncclSuccess);
        waitUntilAsleep(me);
        asleep = true;
        EXPECT(me.synchronize() == ncclInvalidUsage);
        EXPECT_MORE(contains(lastError(), "broadcast of 1 float32, root 0; rank 1 on host h2"), lastError());
        told = true;
      }
      while (!asleep) std::this_thread::yield();
      if (me.number() == 0) {
        EXPECT(me.run({broadcast}) == ncclSuccess);
        sent = true;
      }
      while (!told || !sent) std::this_thread::yield();  // nobody leaves before
    });
  }
}

TEST(a_peer_without_a_listener_is_a_remote_error) {
  World world(twoHosts(variant(Algorithm::ring, 1, 4096)));
  world.hangUp(1);
  const auto one = world.join(0);
  EXPECT(one->connect() == ncclRemoteError);
  EXPECT_MORE(contains(one->path().asyncError().sentence, "rank 1 on host h2"), one->path().asyncError().sentence);
}

TEST(strangers_do_not_disturb_a_communicator) {
  World world(twoHosts(variant(Algorithm::ring, 1, 4096)));
  std::mt19937 random(1);
  std::vector<int> strangers;
  const auto knock = [&](uint32_t rank, const void* data, size_t bytes, bool stay) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(uint16_t(world.port(rank)));
    EXPECT(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    EXPECT(send(fd, data, bytes, MSG_NOSIGNAL) == ssize_t(bytes));
    if (stay) {
      strangers.push_back(fd);
    } else {
      close(fd);
    }
  };
  const auto knockAll = [&] {
    for (uint32_t rank : {0u, 1u}) {
      net::Hello hello;
      hello.listener = random();  // nobody's
      knock(rank, &hello, sizeof hello, true);
      net::Hello wrong = hello;
      wrong.magic++;
      knock(rank, &wrong, sizeof wrong, true);
      wrong = hello;
      wrong.version++;
      knock(rank, &wrong, sizeof wrong, false);
      knock(rank, &hello, 20, false);  // cut
      knock(rank, &hello, 20, true);   // slow
      char garbage[300];
      for (auto& byte : garbage) byte = char(random());
      knock(rank, garbage, sizeof garbage, true);
      knock(rank, "GET / HTTP/1.1\r\n\r\n", 18, false);
    }
  };
  knockAll();
  world.run([&](Rank& me) {
    std::vector<float> data(5000, 1.f);
    if (me.number() == 0) knockAll();
    for (int i = 0; i < 20; i++) EXPECT(me.allReduce(data.data(), data.data(), data.size()) == ncclSuccess);
    EXPECT(data[4999] == float(1 << 20));
  });
  for (int fd : strangers) close(fd);
}

TEST(random_delays_do_not_change_the_results) {
  PlanSpec spec = oneHost(4, variant(Algorithm::ring, 2, 3000));
  spec.rings = {{0, 1, 2, 3}, {3, 1, 0, 2}};
  spec.hostOf = {0, 1, 0, 1};
  spec.spinNanoseconds = 1000;
  World world(spec);
  world.run([](Rank& me) {
    std::mt19937 random(me.number());
    std::vector<int> data(4000);
    for (int round = 0; round < 60; round++) {
      for (size_t i = 0; i < data.size(); i++) data[i] = int(i) + round;
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 400));
      EXPECT(me.allReduce(data.data(), data.data(), data.size(), ncclInt32) == ncclSuccess);
      bool right = true;
      for (size_t i = 0; i < data.size(); i++) right &= data[i] == 4 * (int(i) + round);
      EXPECT(right);
    }
  });
}

TEST_MAIN
