// What every transport must do, instantiated for each: order, contents, counting, backpressure, both directions, many
// connections.
#include "host/shm/transport.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>

#include "datapath/spin_wait.h"
#include "host/connections.h"
#include "net/proxy/net_transport.h"
#include "support/check.h"
#include "support/world.h"

using namespace ncclrun;
using namespace ncclrun::test;

namespace {

// A transport and the protocol over it; of a network: its plugin, "none" for sockets.
struct Way {
  plan::Transport transport;
  plan::Protocol protocol;
  const char* plugin = "none";
  uint32_t slots = 2;  // of a pair's connection
  uint32_t slotBytes = 1000;
};
constexpr Way kShm{plan::Transport::shm, plan::Protocol::simple};
constexpr Way kShmLL{plan::Transport::shm, plan::Protocol::ll};
constexpr Way kSocket{plan::Transport::socket, plan::Protocol::simple};
constexpr Way kSocketLL{plan::Transport::socket, plan::Protocol::ll};
constexpr Way kPlugin{plan::Transport::socket, plan::Protocol::simple, NCCLRUN_TEST_PLUGINS "/libnccl-net-example.so"};

PlanSpec specFor(plan::Transport transport) {
  PlanSpec spec = oneHost(2, variant(plan::Algorithm::ring, 2, 4096));
  spec.rings = {{0, 1}, {1, 0}};
  spec.sameHost = transport;
  spec.pairSteps = 2;
  spec.pairStepBytes = 1000;
  spec.spinNanoseconds = 1000;
  return spec;
}

// Two ranks' transports, without a communicator above them.
class Pair {
 public:
  explicit Pair(Way way) : Pair(way, way.plugin) {}
  // Rank 1 has another plugin than rank 0.
  Pair(Way way, const char* otherPlugin) : spec_(specFor(way.transport)), protocol_(way.protocol) {
    spec_.pairSteps = way.slots;
    spec_.pairStepBytes = way.slotBytes;
    spec_.ports.resize(2);
    int listeners[2];
    for (uint32_t rank : {0u, 1u}) listeners[rank] = makeListener(spec_.ports[rank]);
    blob_ = encode(spec_, 0);
    EXPECT(plan_.open(blob_).ok());
    Descriptor segment(makeSegment(plan_.header().segmentBytes));
    for (uint32_t rank : {0u, 1u}) {
      EXPECT(segments_[rank].map(segment.get(), plan_).ok());
      Doorbell& bell = segments_[rank].doorbell(rank);
      setenv("NCCL_NET_PLUGIN", rank == 0 ? way.plugin : otherPlugin, 1);
      interrupts_[rank] = std::make_unique<Interrupt>(segments_[rank].abortBlock(), bell);
      if (way.transport == plan::Transport::shm) {
        close(listeners[rank]);
        transports_[rank] = std::make_unique<ShmTransport>(plan_, segments_[rank], rank, call_, gonePeers_);
      } else {
        auto socket =
            std::make_unique<NetTransport>(plan_, rank, call_, *interrupts_[rank], bell, gonePeers_, listeners[rank]);
        EXPECT(socket->start().ok());
        transports_[rank] = std::move(socket);
      }
      transports_[rank]->beginLaunch();
    }
  }
  Transport& of(uint32_t rank) { return *transports_[rank]; }
  // Of `rank`, whose peer is the other.
  Endpoint& end(uint32_t rank, uint32_t channel, bool sends) {
    Endpoint& end = *of(rank).endpoint(1 - rank, channel, sends);
    return protocol_ == plan::Protocol::ll ? end.ll() : end;
  }
  Interrupt& interrupt(uint32_t rank) { return *interrupts_[rank]; }
  // In order: as an engine does.
  void leave(uint32_t rank) {
    segments_[rank].leave(rank, 0);
    transports_[rank].reset();
  }
  bool await(uint32_t rank, Endpoint& end) {
    SpinWait spin(*interrupts_[rank], segments_[rank].doorbell(rank), 1000);
    // As blocks do.
    return spin.wait([&] { return end.ready(); },
                     [&] {
                       end.watch();
                       if (const Status why = end.gone(); !why.ok() && !end.ready()) interrupts_[rank]->raise(why);
                     });
  }

 private:
  PlanSpec spec_;
  plan::Protocol protocol_;
  std::vector<std::byte> blob_;
  PlanView plan_;
  Segment segments_[2];
  const OwnCall call_;
  const GonePeers gonePeers_;
  std::unique_ptr<Interrupt> interrupts_[2];
  std::unique_ptr<Transport> transports_[2];
};

uint32_t lengthOf(uint32_t step) { return step * 37 % (LLLines::kPayloadBytes + 1); }

void sendAll(Pair& pair, uint32_t rank, Endpoint& end, uint32_t steps) {
  for (uint32_t step = 0; step < steps; step++) {
    EXPECT(pair.await(rank, end));
    memset(end.slot(), int(step % 251), lengthOf(step));
    end.publish(lengthOf(step));
  }
}

void receiveAll(Pair& pair, uint32_t rank, Endpoint& end, uint32_t steps, uint32_t sleepEvery) {
  for (uint32_t step = 0; step < steps; step++) {
    if (sleepEvery != 0 && step % sleepEvery == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
    EXPECT(pair.await(rank, end));
    EXPECT(end.arrived() == lengthOf(step));
    bool right = true;
    for (uint32_t i = 0; i < end.arrived(); i++) right &= end.slot()[i] == std::byte(step % 251);
    EXPECT(right);
    end.release();
  }
}

void carriesSteps(Way way) {
  for (uint32_t sleepEvery : {0u, 50u}) {
    Pair pair(way);
    constexpr uint32_t kSteps = 3000;
    uint64_t total = 0;
    for (uint32_t step = 0; step < kSteps; step++) total += lengthOf(step);
    Endpoint& out = pair.end(0, kPairChannel, true);
    EXPECT(&out == &pair.end(0, kPairChannel, true));
    std::thread sender([&] { sendAll(pair, 0, out, kSteps); });
    // The receiver may ask for its end long after the sender began.
    Endpoint& in = pair.end(1, kPairChannel, false);
    receiveAll(pair, 1, in, kSteps, sleepEvery);
    sender.join();
    EXPECT(out.bytes() == total && in.bytes() == total);
    while (!pair.of(0).idle()) std::this_thread::yield();
    EXPECT(pair.of(0).connected().ok());
  }
}

void doesNotOvertakeTheReceiver(Way way) {
  Pair pair(way);
  Endpoint& out = pair.end(0, kPairChannel, true);
  Endpoint& in = pair.end(1, kPairChannel, false);
  EXPECT(!in.ready());
  std::thread sender([&] { sendAll(pair, 0, out, 4); });
  EXPECT(pair.await(1, in));
  EXPECT(in.arrived() == lengthOf(0));
  // Not given back: the same step stays in front, untouched.
  EXPECT(in.ready() && in.arrived() == lengthOf(0));
  receiveAll(pair, 1, in, 4, 0);
  EXPECT(!in.ready());
  sender.join();
}

void connectionsAreIndependent(Way way) {
  Pair pair(way);
  std::vector<std::thread> threads;
  for (uint32_t rank : {0u, 1u}) {
    for (uint32_t channel : {0u, 1u, kPairChannel}) {
      for (bool sends : {false, true}) {
        Endpoint* end = &pair.end(rank, channel, sends);
        threads.emplace_back([&pair, rank, end, sends] {
          if (sends) {
            sendAll(pair, rank, *end, 500);
          } else {
            receiveAll(pair, rank, *end, 500, 100);
          }
        });
      }
    }
  }
  for (auto& thread : threads) thread.join();
}

// Of the steps of a connection some lie in the user's memory on the one side, some on the other, some on both. A step
// that has another size than the receiver says arrives in its slot.
void payloadsInTheUsersMemory(uint32_t slots) {
  Pair pair(
      {.transport = plan::Transport::socket, .protocol = plan::Protocol::simple, .slots = slots, .slotBytes = 70'000});
  constexpr uint32_t kSteps = 400;
  const auto bytesOf = [](uint32_t step) { return 1 + step * 7919 % 70'000; };
  Endpoint& out = pair.end(0, kPairChannel, true);
  EXPECT(out.lends());
  std::thread sender([&] {
    std::mt19937 random(1);
    std::vector<std::vector<std::byte>> memory(kSteps);
    for (uint32_t step = 0; step < kSteps; step++) {
      const bool isLent = random() % 3 != 0;
      if (isLent) memory[step].resize(bytesOf(step));
      EXPECT(pair.await(0, out));
      memset(isLent ? memory[step].data() : out.slot(), int(step % 251), bytesOf(step));
      out.publish(bytesOf(step), isLent ? memory[step].data() : nullptr);
    }
    while (!out.hasSent()) std::this_thread::yield();
  });
  Endpoint& in = pair.end(1, kPairChannel, false);
  std::mt19937 random(2);
  uint32_t direct = 0;
  for (uint32_t step = 0; step < kSteps; step++) {
    const uint32_t bytes = bytesOf(step);
    std::vector<std::byte> target(bytes + 1, std::byte{255});
    const uint32_t choice = random() % 4;
    const bool isOfAnotherSize = choice == 1;
    if (choice > 0) in.receiveInto(target.data(), isOfAnotherSize ? bytes + 1 : bytes);
    EXPECT(pair.await(1, in));
    EXPECT(in.arrived() == bytes && (in.payload() == in.slot() || in.payload() == target.data()));
    EXPECT(!(isOfAnotherSize && in.payload() == target.data()));
    direct += in.payload() == target.data() ? 1 : 0;
    EXPECT(std::all_of(in.payload(), in.payload() + bytes, [&](std::byte b) { return b == std::byte(step % 251); }));
    EXPECT(target[bytes] == std::byte{255});
    in.release();
  }
  sender.join();
  EXPECT(direct > 0);
}

constexpr Way kLargeSlots{
    .transport = plan::Transport::socket, .protocol = plan::Protocol::simple, .slots = 2, .slotBytes = 64u << 20};

void aSenderLeavesTheUsersMemoryAlone() {
  Pair pair(kLargeSlots);
  Endpoint& out = pair.end(0, kPairChannel, true);
  Endpoint& in = pair.end(1, kPairChannel, false);
  EXPECT(pair.await(0, out));
  std::vector<std::byte> memory(kLargeSlots.slotBytes, std::byte{1});
  out.publish(kLargeSlots.slotBytes, memory.data());
  EXPECT(!out.hasSent());  // nobody has read anything yet
  out.forgetLent();
  std::fill(memory.begin(), memory.end(), std::byte{2});
  while (!pair.interrupt(0).raised()) EXPECT(!out.hasSent());
  EXPECT(!in.ready());
}

void aReceiverLeavesTheUsersMemoryAlone() {
  Pair pair(kLargeSlots);
  Endpoint& out = pair.end(0, kPairChannel, true);
  Endpoint& in = pair.end(1, kPairChannel, false);
  std::vector<std::byte> memory(1 << 20, std::byte{1});
  in.receiveInto(memory.data(), uint32_t(memory.size()));
  EXPECT(pair.await(0, out) && !in.ready());
  in.forgetLent();
  memset(out.slot(), 2, memory.size());
  out.publish(uint32_t(memory.size()));
  while (!pair.interrupt(1).raised()) EXPECT(!in.ready());
  EXPECT(std::all_of(memory.begin(), memory.end(), [](std::byte b) { return b == std::byte{1}; }));
}

void anInterruptEndsAWait(Way way) {
  Pair pair(way);
  Endpoint& in = pair.end(1, kPairChannel, false);
  bool ready = true;
  std::thread waiting([&] { ready = pair.await(1, in); });
  pair.interrupt(1).raise({ncclRemoteError, "enough"});
  waiting.join();
  EXPECT(!ready);
  EXPECT(pair.interrupt(1).status().sentence == "enough");
}

// What it sent before can still be received.
void whoLeftInOrderIsGone(Way way) {
  way.slots = 8;  // a plugin's sender waits until the receiver has room for its last message
  Pair pair(way);
  Endpoint& out = pair.end(0, kPairChannel, true);
  Endpoint& in = pair.end(1, kPairChannel, false);
  Endpoint& back = pair.end(1, kPairChannel, true);
  EXPECT(pair.await(1, back));
  sendAll(pair, 0, out, 2);
  EXPECT(pair.await(1, in));
  EXPECT(in.gone().ok() && back.gone().ok());
  while (!pair.of(0).idle()) std::this_thread::yield();
  pair.leave(0);
  receiveAll(pair, 1, in, 2, 0);
  while (in.gone().ok() || back.gone().ok()) EXPECT(!in.ready());
  EXPECT(in.gone().code == ncclInvalidUsage && back.gone().code == ncclInvalidUsage);
  EXPECT(!in.ready() && !pair.interrupt(1).raised());
}

// The data, the end of the connection and the goodbye come at the same time.
void whoLeavesAtOnceLosesNothing(Way way, uint32_t rounds = 200) {
  way.slots = 8;
  for (uint32_t round = 0; round < rounds; round++) {
    const uint32_t steps = 1 + round % 5;
    Pair pair(way);
    std::thread sender([&] {
      Endpoint& out = pair.end(0, kPairChannel, true);
      sendAll(pair, 0, out, steps);
      while (!pair.of(0).idle()) std::this_thread::yield();
      pair.leave(0);
    });
    Endpoint& in = pair.end(1, kPairChannel, false);
    receiveAll(pair, 1, in, steps, 0);
    EXPECT_MORE(!pair.interrupt(1).raised(), pair.interrupt(1).status().sentence);
    sender.join();
  }
}

}  // namespace

#define CONFORMS(way, kWay)                                                               \
  TEST(way##_carries_steps_in_order) { carriesSteps(kWay); }                              \
  TEST(way##_sender_does_not_overtake_the_receiver) { doesNotOvertakeTheReceiver(kWay); } \
  TEST(way##_connections_are_independent) { connectionsAreIndependent(kWay); }            \
  TEST(way##_wait_ends_on_an_interrupt) { anInterruptEndsAWait(kWay); }                   \
  TEST(way##_connection_is_gone_after_its_peer_left) { whoLeftInOrderIsGone(kWay); }      \
  TEST(way##_peer_that_leaves_at_once_loses_nothing) { whoLeavesAtOnceLosesNothing(kWay); }

CONFORMS(shm, kShm)
CONFORMS(shm_ll, kShmLL)
CONFORMS(socket, kSocket)
CONFORMS(socket_ll, kSocketLL)
CONFORMS(plugin, kPlugin)

// Their steps are counted together and never mistaken for each other.
TEST(both_protocols_alternate_on_one_connection) {
  Pair pair(kShm);
  Endpoint& out = pair.end(0, kPairChannel, true);
  Endpoint& in = pair.end(1, kPairChannel, false);
  uint64_t total = 0;
  for (uint32_t round = 0; round < 100; round++) {
    for (const bool low : {round % 3 == 0, round % 2 == 0}) {
      sendAll(pair, 0, low ? out.ll() : out, 2);
      EXPECT(!(low ? in : in.ll()).ready());
      receiveAll(pair, 1, low ? in.ll() : in, 2, 0);
      total += lengthOf(0) + lengthOf(1);
    }
  }
  EXPECT(out.bytes() == total && in.bytes() == total);
}

// Each over a library of its own, which reads once what is planted. The last one's messages hold 256 bytes, and steps
// up to 508: these travel in parts.
TEST(a_plugin_may_delay_block_reorder_or_hide_sizes_and_steps_still_arrive_in_order) {
  const struct {
    const char* plugin;
    const char* behaviour;
  } planted[] = {{NCCLRUN_TEST_PLUGINS "/libnccl-net-double-v6.so", "block-ms=20,null-comm=5"},
                 {NCCLRUN_TEST_PLUGINS "/libnccl-net-double-v7.so", "null-request=3,in-order"},
                 {NCCLRUN_TEST_PLUGINS "/libnccl-net-double-v8.so", "no-sizes,accept-ms=400"},
                 {NCCLRUN_TEST_PLUGINS "/libnccl-net-double-v9.so", "other-first,done-after=4"},
                 {NCCLRUN_TEST_PLUGINS "/libnccl-net-double-v10.so", "bad-properties"},
                 {NCCLRUN_TEST_PLUGINS "/libnccl-net-double-v12.so", "max-bytes=256"}};
  for (const auto& [plugin, behaviour] : planted) {
    setenv("NCCLRUN_NET_DOUBLE", behaviour, 1);
    const Way way{plan::Transport::socket, plan::Protocol::simple, plugin};
    carriesSteps(way);
    whoLeavesAtOnceLosesNothing(way, 2);
  }
}

TEST(payloads_may_lie_in_the_users_memory) {
  payloadsInTheUsersMemory(2);
  payloadsInTheUsersMemory(8);
}
TEST(a_sender_whose_call_has_ended_leaves_the_users_memory_alone) { aSenderLeavesTheUsersMemoryAlone(); }
TEST(a_receiver_whose_call_has_ended_leaves_the_users_memory_alone) { aReceiverLeavesTheUsersMemoryAlone(); }

// The error names the peer and the plugin, and the receiver does not wait for ever.
TEST(a_plugin_whose_test_fails_ends_the_wait) {
  setenv("NCCLRUN_NET_DOUBLE", "test-error=20", 1);
  Pair pair({plan::Transport::socket, plan::Protocol::simple, NCCLRUN_TEST_PLUGINS "/libnccl-net-double-v11.so"});
  Endpoint& out = pair.end(0, kPairChannel, true);
  Endpoint& in = pair.end(1, kPairChannel, false);
  std::thread sender([&] {
    while (!pair.interrupt(0).raised() && pair.await(0, out)) out.publish(8);
  });
  while (in.gone().ok() && !pair.interrupt(1).raised()) {
    if (in.ready()) in.release();
  }
  sender.join();
  const Status status = pair.interrupt(0).status();
  EXPECT_MORE(status.sentence.find("rank 1 on host h1") != std::string::npos, status.sentence);
}

// Whoever notices it first tells the other one.
TEST(ranks_on_different_networks_fail_with_the_names_of_both) {
  Pair pair(kSocket, kPlugin.plugin);
  Endpoint& out = pair.end(0, 0, true);
  const auto isNamed = [&](uint32_t rank) {
    const Status status = pair.interrupt(rank).status();
    EXPECT(status.code == ncclInvalidUsage);
    return status.sentence.find("rank 0 on host h1 uses Socket") != std::string::npos ||
           status.sentence.find("rank 0 on host h1 uses example") != std::string::npos ||
           status.sentence.find("rank 1 on host h1 uses") != std::string::npos;
  };
  while (!pair.interrupt(0).raised() || !pair.interrupt(1).raised()) EXPECT(!out.ready());
  EXPECT(isNamed(0) && isNamed(1));
}

TEST_MAIN
