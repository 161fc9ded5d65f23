// Out-of-band connections between ranks: what they say first, and who counts as silent.
#include <poll.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <functional>

#include "base/clock.h"
#include "net/oob/oob_network.h"
#include "support/world.h"

using namespace ncclrun;
using namespace ncclrun::test;

namespace {

constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint64_t kTimeout = 400 * kMillisecond;
constexpr uint64_t kLimit = 20'000 * kMillisecond;

// Ranks 0 and 1 in one process.
class Pair {
 public:
  // longer: rank 1's timeout, in those of rank 0.
  explicit Pair(uint64_t longer = 1) {
    int listeners[2];
    for (uint32_t rank : {0u, 1u}) listeners[rank] = makeListener(ports_[rank]);
    for (uint32_t rank : {0u, 1u}) {
      net::OobNetwork::Setup setup{.token = {7},
                                   .rank = rank,
                                   .ranks = 2,
                                   .address = "127.0.0.1",
                                   .listening = Descriptor(listeners[rank]),
                                   .addressOf =
                                       [this](uint32_t peer, net::Address& out) {
                                         out = *net::parseAddress("127.0.0.1");
                                         out.setPort(uint16_t(ports_[peer]));
                                         return Status{};
                                       },
                                   .network = rank == 0 ? "One" : "Other",
                                   .timeoutNanoseconds = rank == 0 ? kTimeout : longer * kTimeout};
      EXPECT(net::OobNetwork::make(std::move(setup), ranks_[rank]).ok());
    }
  }
  net::OobNetwork& of(uint32_t rank) { return *ranks_[rank]; }
  // Moves those ranks until `isDone`, as their proxies do; false: it took too long.
  bool moveUntil(std::initializer_list<uint32_t> moving, const std::function<bool()>& isDone) {
    for (const uint64_t begun = nowNanoseconds(); !isDone();) {
      if (nowNanoseconds() - begun > kLimit) return false;
      pollfd events[2];
      nfds_t count = 0;
      for (const uint32_t rank : moving)
        events[count++] = {.fd = ranks_[rank]->eventDescriptor(), .events = POLLIN, .revents = 0};
      poll(events, count, int(kTimeout / kMillisecond / 16));
      for (const uint32_t rank : moving) {
        EXPECT(ranks_[rank]->advance(heard[rank]).ok());
        ranks_[rank]->tick(heard[rank]);
      }
    }
    return true;
  }
  // Each has introduced itself to the other, and rank 1 has heard a request.
  void connect() {
    of(0).send(1, {.kind = net::OobKind::request});
    EXPECT(moveUntil({0, 1}, [&] { return heard[1].size() == 2 && heard[0].size() == 1; }));
    heard[0].clear();
  }
  // What a rank has heard, without what tells of no event.
  std::vector<net::OobNetwork::Event> heard[2];

 private:
  uint32_t ports_[2] = {};
  std::unique_ptr<net::OobNetwork> ranks_[2];
};

}  // namespace

// An offer that comes before the name of its network would be taken for one of this rank's own.
TEST(a_rank_that_answers_on_its_peers_socket_introduces_itself_first) {
  Pair pair;
  pair.of(0).send(1, {.kind = net::OobKind::request});
  EXPECT(pair.moveUntil({0, 1}, [&] { return pair.heard[1].size() == 2; }));
  pair.of(1).send(0, {.kind = net::OobKind::offer});
  EXPECT(pair.moveUntil({0, 1}, [&] { return pair.heard[0].size() == 2; }));
  EXPECT(pair.heard[0][0].message.kind == net::OobKind::introduction);
  EXPECT(std::string(pair.heard[0][0].message.network.data()) == "Other");
  EXPECT(pair.heard[0][1].message.kind == net::OobKind::offer);
}

TEST(a_peer_that_sends_no_heartbeat_for_the_timeout_is_lost_though_its_host_acknowledges) {
  Pair pair;
  pair.connect();
  const uint64_t begun = nowNanoseconds();
  EXPECT(pair.moveUntil({0}, [&] { return !pair.heard[0].empty(); }));
  EXPECT(nowNanoseconds() - begun > kTimeout / 2);
  const auto& event = pair.heard[0].front();
  EXPECT(event.lost && event.peer == 1);
  EXPECT_MORE(event.why.find("sent no heartbeat") != std::string::npos, event.why);
  EXPECT_MORE(event.why.find("reached from 127.0.0.1 (lo)") != std::string::npos, event.why);
}

TEST(peers_that_only_send_heartbeats_stay_connected) {
  Pair pair;
  pair.of(0).send(1, {.kind = net::OobKind::request});
  const uint64_t end = nowNanoseconds() + 4 * kTimeout;
  EXPECT(pair.moveUntil({0, 1}, [&] { return nowNanoseconds() > end; }));
  for (const auto& heard : pair.heard) {
    for (const auto& event : heard) EXPECT_MORE(!event.lost, event.why);
  }
}

// A rank with the longer timeout sends fewer heartbeats.
TEST(where_ranks_have_different_timeouts_the_longer_holds_for_both) {
  Pair pair(10);
  pair.connect();
  const uint64_t end = nowNanoseconds() + 4 * kTimeout;
  EXPECT(pair.moveUntil({0, 1}, [&] { return nowNanoseconds() > end; }));
  EXPECT_MORE(pair.heard[0].empty(), pair.heard[0].empty() ? "" : pair.heard[0].front().why);
}

TEST(a_peer_that_does_not_answer_a_new_connection_for_the_timeout_is_lost) {
  Pair pair;
  pair.of(0).send(1, {.kind = net::OobKind::request});
  EXPECT(pair.moveUntil({0}, [&] { return !pair.heard[0].empty(); }));
  EXPECT_MORE(pair.heard[0].front().lost, pair.heard[0].front().why);
}

// The clock of a process that was stopped jumps; its peers may be a moment behind.
TEST(a_rank_that_was_stopped_itself_begins_to_count_anew) {
  Pair pair;
  pair.connect();
  const uint64_t end = nowNanoseconds() + 2 * kTimeout;
  while (nowNanoseconds() < end) poll(nullptr, 0, int(kTimeout / kMillisecond));
  pair.of(0).tick(pair.heard[0]);
  EXPECT(pair.heard[0].empty());
  EXPECT(pair.moveUntil({0}, [&] { return !pair.heard[0].empty(); }));
  EXPECT(pair.heard[0].front().lost);
}

// Its user may look at it for as long as they like.
TEST(a_peer_that_a_debugger_holds_is_not_lost_by_its_silence) {
  Pair pair;
  pair.connect();
  const pid_t peer = fork();
  if (peer == 0) {
    pair.moveUntil({1}, [] { return false; });
    _exit(0);
  }
  EXPECT_MORE(ptrace(PTRACE_SEIZE, peer, nullptr, nullptr) == 0, std::strerror(errno));
  const uint64_t seized = nowNanoseconds();
  EXPECT(pair.moveUntil({0}, [&] { return nowNanoseconds() - seized > 2 * kTimeout; }));
  EXPECT(ptrace(PTRACE_INTERRUPT, peer, nullptr, nullptr) == 0);
  EXPECT(waitpid(peer, nullptr, 0) == peer);
  const uint64_t held = nowNanoseconds();
  EXPECT(pair.moveUntil({0}, [&] { return nowNanoseconds() - held > 3 * kTimeout; }));
  EXPECT_MORE(pair.heard[0].empty(), pair.heard[0].empty() ? "" : pair.heard[0].front().why);
  kill(peer, SIGKILL);
  EXPECT(waitpid(peer, nullptr, 0) == peer);
}

TEST_MAIN
