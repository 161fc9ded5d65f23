// The faults that tests plant in the stand-in for libibverbs, its events, and its completion channels.
#include <fcntl.h>
#include <poll.h>

#include <cerrno>
#include <future>
#include <map>
#include <set>
#include <thread>

#include "verbs/client/stand_in.h"

using namespace stand_in_verbs;

namespace {

bool isReadable(int descriptor) {
  pollfd one = {descriptor, POLLIN, 0};
  return poll(&one, 1, 0) == 1;
}

}  // namespace

TEST(the_request_that_a_line_names_ends_as_it_says) {
  for (const int status : {kFlushed, kRemoteAccess, kRetryExceeded, kReceiverRetryExceeded}) {
    const Configured configured;
    Both both;
    EXPECT(plant("status=" + std::to_string(status) + " after=3 device=sia op=write-imm") == 0);
    EXPECT(both.a.post(kWrite, both.b.self(), kSmall) == 0 && both.a.status() == 0);
    EXPECT(both.isWhole() && both.isWhole());
    both.a.data[0] = 77;
    EXPECT(both.b.want() == 0 && both.a.post(kWriteImmediate, both.b.self(), kSmall) == 0);
    EXPECT(both.a.status() == status && both.a.state() == kError);
    EXPECT(both.b.data[0] != 77 && both.b.status(0) == -1 && both.b.state() == kReadyToSend);
  }
}

TEST(a_request_may_arrive_and_fail_all_the_same) {
  const Configured configured;
  Both both;
  EXPECT(plant("status=12 delivered=1") == 0 && both.b.want() == 0);
  both.a.data[0] = 78;
  EXPECT(both.a.post(kWriteImmediate, both.b.self(), kSmall) == 0 && both.a.status() == kRetryExceeded);
  EXPECT(both.b.status() == 0 && both.b.data[0] == 78);
}

TEST(receives_fail_too) {
  const Configured configured;
  Both both;
  EXPECT(plant("status=4 after=2 op=receive device=sib") == 0 && both.isWhole());
  EXPECT(both.b.want() == 0 && both.a.post(kWriteImmediate, both.b.self(), kSmall) == 0);
  EXPECT(both.b.status() == kLocalProtection && both.b.state() == kError);
}

TEST(a_port_that_is_down_swallows_traffic_until_it_is_up) {
  const Configured configured;
  Both both({.timeout = 12, .retries = 2}), patient({.timeout = 16, .retries = 7});
  End watcher(verbs(), "sib", kSmall);
  EXPECT(plant("port=down device=sib") == 0);
  EXPECT(both.b.event(1000) == kPortError && watcher.event(1000) == kPortError && both.a.event(0) == -1);
  EXPECT(verbs().queryPort(watcher.context, 1, &watcher.port) == 0 && watcher.port.state == 1);
  EXPECT(both.a.post(kWrite, both.b.self(), kSmall) == 0 && both.a.status() == kRetryExceeded);
  EXPECT(patient.a.post(kWrite, patient.b.self(), kSmall) == 0 && patient.a.status(30) == -1);
  EXPECT(plant("port=up device=sib") == 0 && both.b.event(1000) == kPortActive);
  EXPECT(patient.a.status() == 0 && count("retransmissions") > 0 && count("lost") > 0);
}

TEST(lost_messages_are_sent_again) {
  const Configured configured("seed=5");
  Both both({.timeout = 8, .retries = 7});
  EXPECT(plant("drop=0.3 device=sib") == 0);
  for (uint8_t round = 0; round < 100; ++round) {
    both.a.data[0] = round;
    EXPECT(both.isWhole() && both.b.data[0] == round);
  }
  EXPECT(plant("drop=1\n") == 0 && both.a.post(kWrite, both.b.self(), kSmall) == 0);
  EXPECT(both.a.status() == kRetryExceeded);
}

TEST(fatal_events_break_queue_pairs) {
  const Configured configured;
  Both both, other;
  const std::string number = std::to_string(both.a.pair->number);
  EXPECT(plant("event=1 device=sia qp=" + number) == 0 && both.a.event(1000) == kQueuePairFatal);
  EXPECT(both.a.state() == kError && other.a.state() == kReadyToSend && other.isWhole());
  EXPECT(plant("event=8 device=sib") == 0 && other.b.event(1000) == kDeviceFatal);
  EXPECT(other.b.state() == kError && other.a.state() == kReadyToSend);
  DeviceAttributes attributes;
  EXPECT(verbs().queryDevice(other.b.context, &attributes) == EIO);
  EXPECT(plant("event=0 device=sia") == 0 && other.a.event(1000) == kCompletionQueueError);
  EXPECT(plant("event=17 device=sia") == 0 && other.a.event(1000) == 17);
}

TEST(addresses_change) {
  const Configured configured;
  Both both({.timeout = 8, .retries = 1});
  EXPECT(plant("gid=10.8.0.77 index=1 device=sib") == 0 && both.b.event(1000) == kGidChange);
  Gid gid;
  EXPECT(verbs().queryGid(both.b.context, 1, 1, &gid) == 0 && gid.raw[15] == 77);
  EXPECT(both.a.post(kWrite, both.b.self(), kSmall) == 0 && both.a.status() == kRetryExceeded);
}

TEST(a_queue_that_overflows_breaks_its_pairs) {
  const Configured configured;
  Both both({}, 4);
  for (int index = 0; index < 5; ++index) EXPECT(both.a.post(kWrite, both.b.self(), kSmall) == 0);
  const std::set<int> events = {both.a.event(1000), both.a.event(1000)};
  EXPECT(events == std::set<int>({kCompletionQueueError, kQueuePairFatal}) && both.a.state() == kError);
  EXPECT(both.a.drain() == 4);
}

TEST(calls_are_refused_as_often_as_planted) {
  const Configured configured;
  Both both;
  EXPECT(plant("refuse=mr errno=1 count=2 device=sia") == 0);
  for (int index = 0; index < 2; ++index)
    EXPECT(verbs().registerMemory(both.a.domain, both.a.data.data(), 8, kLocalWrite) == nullptr && errno == EPERM);
  RegionHandle* const region = verbs().registerMemory(both.a.domain, both.a.data.data(), 8, kLocalWrite);
  EXPECT(region != nullptr && verbs().deregister(region) == 0);
  EXPECT(plant("refuse=modify errno=110\nrefuse=qp\nrefuse=cq\nrefuse=pd\nrefuse=channel\n") == 0);
  EXPECT(both.a.toSend({}) == ETIMEDOUT && both.a.toSend({}) == EINVAL);
  QueuePairOptions options = {};
  EXPECT(verbs().createPair(both.a.domain, &options) == nullptr && errno == ENOMEM);
  EXPECT(verbs().createQueue(both.a.context, 4, nullptr, nullptr, 0) == nullptr && errno == ENOMEM);
  EXPECT(verbs().allocDomain(both.a.context) == nullptr && verbs().createChannel(both.a.context) == nullptr);
}

TEST(sends_take_as_long_as_the_delay_says) {
  const Configured configured("delay=3000-4000");
  Both both;
  const auto start = std::chrono::steady_clock::now();
  EXPECT(both.isWhole());
  EXPECT(std::chrono::steady_clock::now() - start >= std::chrono::milliseconds(3));
}

TEST(completions_of_several_pairs_are_reordered_and_those_of_one_are_not) {
  const Configured configured("reorder=1");
  End a(verbs(), "sia", kSmall), b(verbs(), "sib", kSmall);
  std::vector<QueuePairHandle*> pairs;
  for (int pair = 0; pair < 3; ++pair) {
    EXPECT(connectBoth(a, b, {}) == 0);
    pairs.push_back(a.pair);
    pairs.push_back(b.pair);
    for (uint64_t id = 0; id < 20; ++id) EXPECT(a.post(kWrite, b.self(), kSmall, kSignaled, id) == 0);
  }
  std::map<uint32_t, uint64_t> next;
  int changes = 0;
  uint32_t last = 0;
  for (int index = 0; index < 60; ++index) {
    Completion completion;
    EXPECT(a.poll(completion) == 1 && completion.id == next[completion.number]++);
    changes += completion.number != last;
    last = completion.number;
  }
  EXPECT(changes > 6);
  a.pair = b.pair = nullptr;
  for (QueuePairHandle* const pair : pairs) EXPECT(verbs().destroyPair(pair) == 0);
}

TEST(a_channel_tells_once_of_each_request_for_notification) {
  const Configured configured;
  Both both({}, 256, true);
  const ContextHandle& context = *both.b.context;
  EXPECT(both.isWhole() && !isReadable(both.b.channel->descriptor));
  EXPECT(context.requestNotification(both.b.queue, 0) == 0);
  EXPECT(both.isWhole() && both.isWhole() && isReadable(both.b.channel->descriptor));
  CompletionQueueHandle* queue = nullptr;
  void* user = nullptr;
  EXPECT(verbs().getQueueEvent(both.b.channel, &queue, &user) == 0 && queue == both.b.queue && user == &both.b);
  EXPECT(!isReadable(both.b.channel->descriptor));
  verbs().ackQueueEvents(queue, 1);
  EXPECT(context.requestNotification(both.b.queue, 1) == 0 && both.isWhole());
  EXPECT(!isReadable(both.b.channel->descriptor) && both.b.want() == 0);
  EXPECT(both.a.post(kWriteImmediate, both.b.self(), kSmall, kSignaled | kSolicited) == 0);
  EXPECT(isReadable(both.b.channel->descriptor));  // nobody takes it: it ends with the queue
}

TEST(what_has_an_event_is_destroyed_when_that_is_acknowledged) {
  const Configured configured;
  Both both;
  EXPECT(plant("event=4 device=sia") == 0);
  AsyncEvent event = {};
  EXPECT(verbs().getAsyncEvent(both.a.context, &event) == 0 && event.queuePair == both.a.pair);
  auto destroyed = std::async(std::launch::async, [&] { both.a.destroyPair(); });
  EXPECT(destroyed.wait_for(std::chrono::milliseconds(20)) == std::future_status::timeout);
  verbs().ackAsyncEvent(&event);
  destroyed.get();
  EXPECT(plant("event=4 device=sib") == 0);
  both.b.destroyPair();  // nobody has taken its event
  EXPECT(fcntl(both.b.context->eventDescriptor, F_SETFL, O_NONBLOCK) == 0);
  EXPECT(verbs().getAsyncEvent(both.b.context, &event) == -1 && errno == EAGAIN);
}

TEST(threads_share_devices) {
  const Configured configured("delay=0-50 seed=3");
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([] {
      for (int round = 0; round < 5; ++round) {
        Both both;
        for (int message = 0; message < 20; ++message) EXPECT(both.isWhole());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_MAIN
