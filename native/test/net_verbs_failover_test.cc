// The verbs backend over the stand-in for libibverbs where things fail: ports, queue pairs, packets, registrations.
// Both sides are in this process; the stand-in is told what to do to them.
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "net/verbs_pair.h"
#include "verbs/client/stand_in.h"

using namespace ncclrun;
using Clock = std::chrono::steady_clock;

namespace {

using stand_in_verbs::Configured;

constexpr const char* kFourCards = "device=sa device=sb device=sc device=sd";

void plant(const std::string& text) { EXPECT_MORE(stand_in_verbs::plant(text) == 0, text); }

std::unique_ptr<net::VerbsNetwork> open(const std::vector<std::string>& cards, const net::VerbsTuning& tuning) {
  net::VerbsConfig config{.ports = {}, .address = "127.0.0.1", .token = {7}, .tuning = tuning};
  for (const std::string& card : cards)
    config.ports.push_back({.card = card, .port = 1, .gid = "::ffff:10.8.0." + std::to_string(card[1] - 'a' + 1)});
  return test::openVerbs(std::move(config));
}

// One host has the cards sa and sb, the other sc and sd: sa and sc are a rail, and sb and sd.
struct Pair : test::VerbsPair {
  explicit Pair(const net::VerbsTuning& tuning, size_t rails = 2)
      : VerbsPair(open(firstOf({"sa", "sb"}, rails), tuning), open(firstOf({"sc", "sd"}, rails), tuning)) {}

 private:
  static std::vector<std::string> firstOf(std::vector<std::string> cards, size_t rails) {
    cards.resize(rails);
    return cards;
  }
};

// What a caller does before each round of calls.
void clearEvents(Pair& pair) {
  pair.here->clearEvents();
  pair.there->clearEvents();
}

struct Outcome {
  Status sender, receiver;
  size_t received = 0;
  double seconds = 0;
};

// As a caller does that has received into GPU memory. The other side may be idle meanwhile.
Status flushed(Pair& pair, const net::Buffer& buffer) {
  net::Request* request = nullptr;
  NCCLRUN_TRY(pair.receiver->iflush({&buffer, 1}, request));
  EXPECT((request == nullptr) == (buffer.bytes == 0));
  const auto begun = Clock::now();
  for (bool isDone = request == nullptr; !isDone;) {
    clearEvents(pair);
    NCCLRUN_TRY(pair.receiver->test(request, isDone, {}));
    if (Clock::now() - begun > std::chrono::seconds(20)) return {ncclInProgress, "the flush does not end"};
  }
  return {};
}

constexpr size_t kDepth = 16, kMost = 200'000;
size_t bytesOf(uint64_t message) { return message % 5 == 0 ? kMost - message % 1'000 : message * 37 % 3'000; }
std::byte byteOf(uint64_t message, size_t at) { return std::byte((message * 131 + at * 7 + (at >> 8)) & 0xff); }

// Sends `count` messages of many sizes, some before and some after `at` message `breakAt`; each must come once, whole
// and in its turn.
Outcome stream(Pair& pair, uint64_t count, uint64_t breakAt, const std::function<void()>& breaks, double limit = 30) {
  std::vector<std::byte> from(kDepth * kMost), to(kDepth * kMost);
  net::Registration own, other;
  OK(pair.sender->registerMemory({.address = from.data(), .bytes = from.size()}, own));
  OK(pair.receiver->registerMemory({.address = to.data(), .bytes = to.size()}, other));
  std::deque<net::Request*> sends, receives;
  uint64_t sent = 0, posted = 0, done = 0;
  Outcome outcome;
  const auto begun = Clock::now();
  bool isBroken = false;
  while ((done < count || !sends.empty()) && outcome.sender.ok() && outcome.receiver.ok()) {
    outcome.seconds = std::chrono::duration<double>(Clock::now() - begun).count();
    if (outcome.seconds > limit) break;
    clearEvents(pair);
    if (posted < count && receives.size() < kDepth) {
      const net::Buffer buffer{to.data() + posted % kDepth * kMost, kMost, int(posted % 3), other};
      net::Request* request = nullptr;
      outcome.receiver = pair.receiver->irecv({&buffer, 1}, request);
      if (request != nullptr) receives.push_back(request), posted++;
    }
    if (sent < count && sends.size() < kDepth) {
      std::byte* const data = from.data() + sent % kDepth * kMost;
      for (size_t i = 0; i < bytesOf(sent); i++) data[i] = byteOf(sent, i);
      net::Request* request = nullptr;
      outcome.sender = pair.sender->isend(data, bytesOf(sent), int(sent % 3), own, request);
      if (request != nullptr) sends.push_back(request), sent++;
    }
    if (!isBroken && sent >= breakAt) {
      isBroken = true;
      breaks();
    }
    bool isDone = false;
    if (!sends.empty() && outcome.sender.ok()) {
      outcome.sender = pair.sender->test(sends.front(), isDone, {});
      if (isDone) sends.pop_front();
    }
    if (receives.empty() || !outcome.receiver.ok()) continue;
    isDone = false;
    size_t bytes = 0;
    outcome.receiver = pair.receiver->test(receives.front(), isDone, {&bytes, 1});
    if (!isDone) continue;
    receives.pop_front();
    const net::Buffer arrived{to.data() + done % kDepth * kMost, bytes, 0, other};
    outcome.receiver = flushed(pair, arrived);
    if (!outcome.receiver.ok()) break;
    const std::byte* const data = to.data() + done % kDepth * kMost;
    bool isRight = bytes == bytesOf(done);
    for (size_t i = 0; i < bytes && isRight; i++) isRight = data[i] == byteOf(done, i);
    EXPECT_MORE(isRight, "message " + std::to_string(done));
    done++;
  }
  outcome.received = done;
  return outcome;
}

constexpr uint64_t kCount = 400;
// Short, so that what is lost is told soon: 4.096 µs × 2^12 × 3.
constexpr net::VerbsTuning kQuick{.timeout = 12, .retries = 2};

void expectWhole(const Outcome& outcome, const std::string& what) {
  EXPECT_MORE(outcome.sender.ok() && outcome.receiver.ok() && outcome.received == kCount,
              what + ": " + std::to_string(outcome.received) + " messages, " + outcome.sender.sentence + " / " +
                  outcome.receiver.sentence);
  printf("       %s: %.0f ms\n", what.c_str(), outcome.seconds * 1'000);
}

std::vector<net::VerbsTuning> tunings() {
  net::VerbsTuning inTurn = kQuick, split = kQuick;
  inTurn.queuePairs = 4;
  split.queuePairs = 3;
  split.splits = true;
  return {kQuick, inTurn, split};
}

void everyMessageArrivesOnceWhenAPathFails() {
  const std::array<std::pair<const char*, const char*>, 8> faults = {{
      {"the sender's port goes down", "port=down device=sa"},
      {"the receiver's port goes down", "port=down device=sc"},
      {"both ports go down", "port=down device=sa\nport=down device=sc"},
      {"packets are lost in silence", "drop=1 device=sa"},
      {"a write is not acknowledged, though it has arrived", "status=12 after=3 device=sa delivered=1"},
      {"a card cannot send", "status=2 after=3 device=sa"},
      {"an advertisement is not acknowledged", "status=12 after=2 device=sc"},
      {"queue pairs fail", "event=1 device=sc"},
  }};
  for (const net::VerbsTuning& tuning : tunings()) {
    for (const auto& [what, fault] : faults) {
      const Configured configured(kFourCards);
      Pair pair(tuning);
      expectWhole(stream(pair, kCount, kCount / 3, [&fault = fault] { plant(fault); }),
                  std::string(what) + ", " + std::to_string(tuning.queuePairs) + " queue pairs");
    }
  }
}

void aConnectionMovesBackWhenTheOtherPortFailsToo() {
  const Configured configured(kFourCards);
  Pair pair(kQuick);
  expectWhole(stream(pair, kCount, kCount / 2, [] { plant("port=down device=sa"); }), "the first port goes down");
  plant("port=up device=sa");
  expectWhole(stream(pair, kCount, kCount / 2, [] { plant("port=down device=sd"); }), "then the second one");
}

void withoutAnotherPortBothSidesAreTold() {
  const Configured configured(kFourCards);
  Pair pair(kQuick, 1);
  const Outcome outcome = stream(pair, kCount, kCount / 3, [] { plant("drop=1 device=sa"); });
  const std::string said = outcome.sender.sentence + outcome.receiver.sentence;
  EXPECT_MORE(said.find("sa port 1, GID ::ffff:10.8.0.1") != std::string::npos &&
                  said.find("sc port 1, GID ::ffff:10.8.0.3") != std::string::npos &&
                  said.find("no packet was acknowledged") != std::string::npos,
              said);
  EXPECT(outcome.seconds < 10);
}

void aPortThatIsDownForAMomentCostsNothing() {
  for (const char* const card : {"sa", "sc"}) {
    const Configured configured(kFourCards);
    Pair pair({.timeout = 14, .retries = 6}, 1);
    std::thread mender;
    std::atomic<bool> isOver{false};
    expectWhole(stream(pair, kCount, kCount / 3,
                       [&] {
                         const long before = stand_in_verbs::count("lost");
                         plant(std::string("port=down device=") + card);
                         mender = std::thread([&isOver, card, before] {
                           // The second loss is that of a packet that was sent again.
                           while (stand_in_verbs::count("lost") < before + 2 && !isOver) std::this_thread::yield();
                           plant(std::string("port=up device=") + card);
                         });
                       }),
                std::string("the only port, ") + card + ", is down for a moment");
    isOver = true;
    mender.join();
  }
}

void whenAllPortsAreDownBothSidesAreTold() {
  const Configured configured(kFourCards);
  Pair pair(kQuick);
  const Outcome outcome = stream(pair, kCount, kCount / 3, [] { plant("port=down device=sa\nport=down device=sb"); });
  const std::string said = outcome.sender.sentence + outcome.receiver.sentence;
  EXPECT_MORE(said.find("no other port") != std::string::npos, said);
}

void anErrorOfMemoryIsNotMovedAway() {
  const Configured configured(kFourCards);
  Pair pair(kQuick);
  const Outcome outcome = stream(pair, kCount, kCount / 3, [] { plant("status=10 after=1 device=sa"); });
  const std::string said = outcome.sender.sentence + outcome.receiver.sentence;
  EXPECT_MORE(said.find("remote error") != std::string::npos && said.find("completion status 10") != std::string::npos,
              said);
}

void refusedRegistrationsNameTheLimit() {
  const Configured configured(kFourCards);
  Pair pair(kQuick);
  std::vector<std::byte> memory(1 << 20);
  plant("refuse=mr errno=12 count=2 device=sa");
  net::Registration registration;
  const Status status = pair.sender->registerMemory({.address = memory.data(), .bytes = memory.size()}, registration);
  EXPECT_MORE(
      status.code == ncclSystemError && status.sentence.find("cannot be registered with sa") != std::string::npos,
      status.sentence);
}

void randomFaultsLoseNothing() {
  std::mt19937 random(20261127);
  const auto any = [&](auto&& list) { return list[random() % list.size()]; };
  const std::array<std::string, 2> rail0 = {"sa", "sc"};
  for (int round = 0; round < 40; round++) {
    const Configured configured(kFourCards);
    const net::VerbsTuning tuning = any(tunings());
    Pair pair(tuning);
    const std::string card = any(rail0);
    const std::array<std::string, 4> faults = {
        "port=down device=" + card, "status=12 after=" + std::to_string(1 + random() % 20) + " device=" + card,
        "status=12 delivered=1 after=" + std::to_string(1 + random() % 20) + " device=" + card,
        "event=1 device=" + card};
    const std::string fault = any(faults) + "\ndelay=0-" + std::to_string(random() % 200);
    const Outcome outcome = stream(pair, kCount, random() % kCount, [&] { plant(fault); });
    EXPECT_MORE(outcome.received == kCount, "round " + std::to_string(round) + ", " + fault + ": " +
                                                std::to_string(outcome.received) + " messages; " +
                                                outcome.sender.sentence + " / " + outcome.receiver.sentence);
  }
}

void nothingIsLeftOfManyConnections() {
  const Configured configured(kFourCards);
  for (int i = 0; i < 1'000; i++) {
    Pair pair(kQuick, 1 + size_t(i % 2));
    if (i % 50 == 0) expectWhole(stream(pair, kCount, kCount, [] {}), "connection " + std::to_string(i));
  }
}

}  // namespace

int main(int argc, char** argv) {
  setenv("NCCL_IBVERBS_LIB", NCCLRUN_TEST_VERBS, 1);
  const std::array<std::pair<const char*, void (*)()>, 9> tests = {{
      {"every message arrives once when a path fails", everyMessageArrivesOnceWhenAPathFails},
      {"a connection moves back when the other port fails too", aConnectionMovesBackWhenTheOtherPortFailsToo},
      {"without another port both sides are told", withoutAnotherPortBothSidesAreTold},
      {"a port that is down for a moment costs nothing", aPortThatIsDownForAMomentCostsNothing},
      {"when all ports are down both sides are told", whenAllPortsAreDownBothSidesAreTold},
      {"an error of memory is not moved away", anErrorOfMemoryIsNotMovedAway},
      {"refused registrations name the limit", refusedRegistrationsNameTheLimit},
      {"random faults lose nothing", randomFaultsLoseNothing},
      {"nothing is left of many connections", nothingIsLeftOfManyConnections},
  }};
  for (const auto& [name, run] : tests) test::cases().push_back({name, run});
  return test::runAll(argc, argv);
}
