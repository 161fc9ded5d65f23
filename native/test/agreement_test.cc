// Agreements of ranks that come together, late, unable or never: all have the same verdict, and none waits for long.
#include "cuda/agreement.h"

#include <array>
#include <random>
#include <thread>

#include "base/clock.h"
#include "support/check.h"

using namespace ncclrun;

namespace {

constexpr uint64_t kLong = 20'000'000'000, kShort = 100'000;

struct Host {
  explicit Host(uint32_t ranks) : records(ranks * ranks * kAgreements), table{records.data(), ranks} {}
  std::vector<AgreementRecord> records;
  const AgreementTable table;
  AbortBlock block{};
  Doorbell bell{};
  Interrupt interrupt{block, bell};
};

BufferLocation placeOf(uint32_t rank, uint64_t number) { return {rank + 1, number << 8, rank, {}}; }

// One rank's part; -1: what it saw of the others is wrong.
int takePart(Host& host, uint32_t rank, uint64_t number, bool able, uint64_t spin) {
  Agreement agreement(host.table, host.interrupt, Agreement::Subject::all(rank, number, host.table.localRanks));
  const BufferLocation own = placeOf(rank, number);
  agreement.publish(able ? &own : nullptr);
  const uint64_t deadline = nowNanoseconds() + spin;
  bool right = true;
  agreement.consent(deadline, [&](uint32_t local, const BufferLocation& location) {
    right = right && location.allocation == local + 1 && location.base == number << 8 && location.offset == local;
    return true;
  });
  const bool direct = agreement.settle(deadline);
  return direct && !right ? -1 : direct;
}

// verdicts[rank][number - 1]
using Verdicts = std::vector<std::vector<int>>;
Verdicts runAgreements(uint32_t ranks, uint64_t numbers, const std::function<int(Host&, uint32_t, uint64_t)>& decide) {
  Host host(ranks);
  Verdicts verdicts(ranks);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < ranks; rank++) {
    threads.emplace_back([&, rank] {
      for (uint64_t number = 1; number <= numbers; number++) verdicts[rank].push_back(decide(host, rank, number));
    });
  }
  for (std::thread& thread : threads) thread.join();
  return verdicts;
}

}  // namespace

TEST(all_ranks_that_wait_for_each_other_agree) {
  const Verdicts verdicts = runAgreements(
      4, 200, [](Host& host, uint32_t rank, uint64_t number) { return takePart(host, rank, number, true, kLong); });
  for (const auto& one : verdicts) EXPECT(one == std::vector<int>(200, 1));
}

TEST(one_unable_rank_decides_for_all) {
  const Verdicts verdicts = runAgreements(3, 100, [](Host& host, uint32_t rank, uint64_t number) {
    return takePart(host, rank, number, number % 3 != rank, kLong);
  });
  for (const auto& one : verdicts) EXPECT(one == std::vector<int>(100, 0));
}

TEST(all_ranks_decide_the_same_however_late_they_arrive) {
  const Verdicts verdicts = runAgreements(4, 3000, [](Host& host, uint32_t rank, uint64_t number) {
    thread_local std::minstd_rand random(rank + 1);
    if (random() % 50 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
    return takePart(host, rank, number, random() % 20 != 0, kShort);
  });
  for (const auto& one : verdicts) {
    EXPECT(one == verdicts[0]);
    EXPECT(std::find(one.begin(), one.end(), -1) == one.end());
  }
}

// It has consented, and then its processor is taken away: what was decided stays readable.
TEST(a_verdict_stays_until_all_ranks_have_read_it) {
  constexpr uint64_t kMany = 3 * kAgreements;
  Host host(2);
  const auto withOther = [&](uint32_t rank, uint64_t number) {
    return Agreement(host.table, host.interrupt, Agreement::Subject::all(rank, number, 2));
  };
  const auto reach = [](uint32_t, const BufferLocation&) { return true; };
  const BufferLocation location = placeOf(0, 1);
  Agreement slow = withOther(0, 1);
  slow.publish(&location);
  std::atomic<bool> goesOn = false;
  std::thread fast([&] {
    EXPECT(takePart(host, 1, 1, true, kLong) == 1);
    goesOn = true;
    for (uint64_t number = 2; number <= kMany; number++) takePart(host, 1, number, true, kShort);
  });
  slow.consent(nowNanoseconds() + kLong, reach);
  while (!goesOn) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // for as long as it takes others to pass all places
  EXPECT(slow.settle(nowNanoseconds() + kLong));
  for (uint64_t number = 2; number <= kMany; number++) takePart(host, 0, number, true, kShort);
  fast.join();
}

TEST(late_ranks_do_not_wait_for_a_rank_that_is_far_ahead) {
  Host host(2);
  // More than there are places for.
  for (uint64_t number = 1; number <= 3 * kAgreements; number++) EXPECT(takePart(host, 0, number, true, kShort) == 0);
  for (uint64_t number = 1; number <= 3 * kAgreements; number++) EXPECT(takePart(host, 1, number, true, kLong) == 0);
}

TEST(an_interrupt_ends_the_wait) {
  Host host(2);
  std::thread later([&] { host.interrupt.raise({ncclRemoteError, "a rank has died"}); });
  EXPECT(takePart(host, 0, 1, true, ~0ull >> 2) == 0);
  later.join();
}

// Others go on at once, and the number may be used again, as something that is not direct.
TEST(nobody_waits_for_a_rank_that_withdrew) {
  Host host(2);
  const BufferLocation location = placeOf(0, 1);
  Agreement given(host.table, host.interrupt, Agreement::Subject::all(0, 1, 2));
  given.publish(&location);
  EXPECT(given.withdraw());
  EXPECT(takePart(host, 1, 1, true, ~0ull >> 2) == 0);
  EXPECT(takePart(host, 0, 1, true, ~0ull >> 2) == 0);
  std::thread other([&] { EXPECT(takePart(host, 1, 2, true, kLong) == 1); });
  EXPECT(takePart(host, 0, 2, true, kLong) == 1);
  other.join();
}

TEST(a_rank_cannot_withdraw_after_all_agreed) {
  Host host(2);
  const BufferLocation location = placeOf(0, 1);
  Agreement given(host.table, host.interrupt, Agreement::Subject::all(0, 1, 2));
  given.publish(&location);
  std::thread other([&] { EXPECT(takePart(host, 1, 1, true, kLong) == 1); });
  given.consent(nowNanoseconds() + kLong, [](uint32_t, const BufferLocation&) { return true; });
  other.join();
  EXPECT(!given.withdraw());
  EXPECT(takePart(host, 1, 1 + kAgreements, true, kShort) == 0);  // it has seen the verdict, nobody waits for that
}

TEST(sender_and_receiver_agree) {
  Host host(2);
  std::array<std::vector<int>, 2> verdicts;
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < 2; rank++) {
    threads.emplace_back([&, rank] {
      for (uint64_t number = 1; number <= 500; number++) {
        const bool sends = rank == 0;
        Agreement agreement(host.table, host.interrupt, Agreement::Subject::message(rank, 0, 1, number));
        const BufferLocation location = placeOf(1, number);
        agreement.publish(!sends && number % 7 == 0 ? nullptr : &location);
        const uint64_t deadline = nowNanoseconds() + kLong;
        agreement.consent(deadline, [&](uint32_t local, const BufferLocation& told) {
          return local == 1 && told.base == number << 8;
        });
        verdicts[rank].push_back(agreement.settle(deadline));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT(verdicts[0] == verdicts[1]);
  EXPECT(verdicts[0][0] == 1 && verdicts[0][6] == 0 && verdicts[0][7] == 1);
}

TEST_MAIN
