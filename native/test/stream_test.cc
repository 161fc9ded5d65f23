// Host streams: order, waiting, callbacks, and errors that are reported once.
#include <atomic>
#include <thread>

#include "support/check.h"
#include "support/world.h"

using namespace ncclrun;
using namespace ncclrun::test;
using plan::Algorithm;

namespace {

struct Seen {
  std::atomic<int> calls{0};
  std::atomic<ncclResult_t> last{ncclInProgress};
  std::thread::id thread;
};

void note(void* argument, ncclResult_t result) {
  auto* seen = static_cast<Seen*>(argument);
  seen->thread = std::this_thread::get_id();
  seen->last = result;
  seen->calls++;
}

PlanSpec simple() { return oneHost(2, variant(Algorithm::directOneShot, 1, 4096)); }

}  // namespace

TEST(an_engine_thread_runs_callbacks_in_order) {
  World world(simple());
  world.run([](Rank& me) {
    for (int round = 0; round < 200; round++) {
      Seen seen;
      float value = 1;
      EXPECT(me.enqueue({allReduceOf(&value, &value, 1)}) == ncclSuccess);
      EXPECT(ncclrunStreamCallback(me.stream(), note, &seen) == ncclSuccess);
      // Half of the time the caller waits at once, half of the time it looks for the callback only.
      if (round % 2 == 0) EXPECT(me.synchronize() == ncclSuccess);
      while (seen.calls == 0) std::this_thread::yield();
      EXPECT(value == 2 && seen.last == ncclSuccess && seen.thread != std::this_thread::get_id());
      EXPECT(me.synchronize() == ncclSuccess);
    }
  });
}

// After many calls that were waited for, one that nobody waits for still runs by itself.
TEST(an_operation_runs_while_no_thread_waits_for_it) {
  World world(simple());
  world.run([](Rank& me) {
    for (int round = 0; round < 30; round++) {
      float value = 1;
      for (int i = 0; i < 10; i++) EXPECT(me.allReduce(&value, &value, 1) == ncclSuccess);
      EXPECT(value == 1024);
      EXPECT(me.enqueue({allReduceOf(&value, &value, 1)}) == ncclSuccess);
      while (ncclrunStreamQuery(me.stream()) == ncclInProgress) std::this_thread::yield();
      EXPECT(value == 2048);
    }
  });
}

// Both callers run every operation on their threads; now and then one is late, and the other's continues without it.
TEST(a_caller_may_lend_its_thread_to_a_stream) {
  World world(simple());
  world.run([](Rank& me) {
    for (uint32_t round = 0; round < 2000; round++) {
      float value = 1;
      Seen seen;
      if (round % 100 == 50 && me.number() == round / 100 % 2) {
        // The other one gives up, and has time for something else.
        EXPECT(me.path().nodeBarrier().code == ncclSuccess);
      }
      EXPECT(me.enqueue({allReduceOf(&value, &value, 1)}) == ncclSuccess);
      const ncclResult_t lent = ncclrunStreamLend(me.stream(), 20'000);
      if (round % 100 == 50 && me.number() != round / 100 % 2) {
        EXPECT(lent == ncclInProgress);
        EXPECT(me.path().nodeBarrier().code == ncclSuccess);
      }
      if (lent == ncclInProgress) {
        EXPECT(ncclrunStreamCallback(me.stream(), note, &seen) == ncclSuccess);
        while (seen.calls == 0) ncclrunStreamLend(me.stream(), round % 2 == 0 ? 0 : 1000);
      }
      EXPECT(value == 2);
    }
    // One launch may need several fibers of its own.
    float sent = 1;
    float received = 0;
    EXPECT(me.enqueue({sendOf(&sent, 4, 1 - me.number()), receiveOf(&received, 4, 1 - me.number())}) == ncclSuccess);
    while (ncclrunStreamLend(me.stream(), 1000) == ncclInProgress) {
    }
    EXPECT(received == 1);
  });
}

// An operation that must not run yet, because an earlier one of another stream waits for its peers, does not keep the
// thread.
TEST(a_borrowed_thread_does_not_wait_for_another_stream) {
  World world(simple());
  world.run([](Rank& me) {
    ncclrunStream_t other;
    EXPECT(ncclrunStreamCreate(&other) == ncclSuccess);
    if (me.number() == 1) EXPECT(me.path().nodeBarrier().code == ncclSuccess);
    float first = 1, second = 2;
    EXPECT(me.enqueue({allReduceOf(&first, &first, 1)}) == ncclSuccess);
    Operation next = allReduceOf(&second, &second, 1);
    next.number = 2;
    EXPECT(me.path().enqueue({&next, 1}, other, nullptr).code == ncclSuccess);
    if (me.number() == 0) {
      EXPECT(ncclrunStreamLend(other, 1000) == ncclInProgress);
      EXPECT(me.path().nodeBarrier().code == ncclSuccess);
    }
    EXPECT(ncclrunStreamSynchronize(other) == ncclSuccess && second == 4);
    EXPECT(me.synchronize() == ncclSuccess && first == 2);
    EXPECT(ncclrunStreamDestroy(other) == ncclSuccess);
  });
}

TEST(a_caller_that_lends_its_thread_gets_the_error) {
  World world(simple());
  const auto lonely = world.join(0);
  float value = 1;
  EXPECT(lonely->enqueue({allReduceOf(&value, &value, 1)}) == ncclSuccess);
  EXPECT(ncclrunStreamLend(lonely->stream(), 1000) == ncclInProgress);
  lonely->path().abort({ncclRemoteError, "first"}, FailureScope::alone);
  ncclResult_t result = ncclInProgress;
  while (result == ncclInProgress) result = ncclrunStreamLend(lonely->stream(), 1000);
  EXPECT(result == ncclRemoteError && std::string(lastError()) == "first");
  EXPECT(ncclrunStreamLend(lonely->stream(), 1000) == ncclSuccess);
  EXPECT(ncclrunStreamLend(nullptr, 1000) == ncclInvalidArgument);
}

TEST(an_error_is_reported_once) {
  World world(simple());
  const auto lonely = world.join(0);
  float value = 1;
  EXPECT(lonely->enqueue({allReduceOf(&value, &value, 1)}) == ncclSuccess);
  EXPECT(ncclrunStreamQuery(lonely->stream()) == ncclInProgress);
  lonely->path().abort({ncclRemoteError, "first"}, FailureScope::alone);
  EXPECT(lonely->synchronize() == ncclRemoteError);
  EXPECT(std::string(lastError()) == "first");
  EXPECT(lonely->synchronize() == ncclSuccess);
  EXPECT(ncclrunStreamQuery(lonely->stream()) == ncclSuccess);
}

TEST(the_callback_receives_the_error) {
  World world(simple());
  const auto lonely = world.join(0);
  Seen seen;
  float value = 1;
  EXPECT(lonely->enqueue({allReduceOf(&value, &value, 1)}) == ncclSuccess);
  EXPECT(ncclrunStreamCallback(lonely->stream(), note, &seen) == ncclSuccess);
  lonely->path().abort({ncclRemoteError, "first"}, FailureScope::alone);
  while (seen.calls == 0) std::this_thread::yield();
  EXPECT(seen.last == ncclRemoteError);
  EXPECT(lonely->synchronize() == ncclSuccess);
}

TEST(many_threads_may_use_one_stream) {
  World world(simple());
  world.run([](Rank& me) {
    std::atomic<int> ended{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++) {
      threads.emplace_back([&] {
        for (int i = 0; i < 100; i++) {
          EXPECT(ncclrunStreamCallback(
                     me.stream(), [](void* count, ncclResult_t) { ++*static_cast<std::atomic<int>*>(count); },
                     &ended) == ncclSuccess);
          if (i % 10 == 0) EXPECT(me.synchronize() == ncclSuccess);
        }
      });
    }
    for (auto& thread : threads) thread.join();
    EXPECT(me.synchronize() == ncclSuccess && ended == 400);
    EXPECT(me.barrier() == ncclSuccess);
  });
}

TEST(destroying_a_stream_waits_for_its_operations) {
  World world(simple());
  world.run([](Rank& me) {
    ncclrunStream_t stream;
    EXPECT(ncclrunStreamCreate(&stream) == ncclSuccess);
    float value = 1;
    const Operation operation = allReduceOf(&value, &value, 1);
    EXPECT(me.path().enqueue({&operation, 1}, stream, nullptr).code == ncclSuccess);
    EXPECT(ncclrunStreamDestroy(stream) == ncclSuccess);
    EXPECT(value == 2);
  });
}

TEST(invalid_arguments_are_rejected) {
  EXPECT(ncclrunStreamCreate(nullptr) == ncclInvalidArgument);
  EXPECT(ncclrunStreamDestroy(nullptr) == ncclInvalidArgument);
  EXPECT(ncclrunStreamCallback(nullptr, nullptr, nullptr) == ncclInvalidArgument);
  EXPECT(ncclrunStreamSynchronize(nullptr) == ncclSuccess);
  World world(simple());
  const auto one = world.join(0);
  EXPECT(one->enqueue({allReduceOf(nullptr, nullptr, ~size_t(0))}) == ncclInvalidArgument);
}

TEST_MAIN
