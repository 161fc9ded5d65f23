// The clock for time stamps is CLOCK_MONOTONIC, and goes forward but for less than a microsecond.
#include "base/stamp_clock.h"

#include <thread>
#include <vector>

#include "support/check.h"

using namespace ncclrun;
using namespace ncclrun::test;

namespace {

constexpr uint64_t kToleranceNs = 100'000;
constexpr uint64_t kBackwardNs = 1'000;
constexpr uint64_t kLastsNs = 400'000'000;  // several comparisons

void readOften() {
  const uint64_t until = nowNanoseconds() + kLastsNs;
  uint64_t last = 0, backward = 0, outside = 0;
  for (uint64_t before = 0; before < until;) {
    before = nowNanoseconds();
    const uint64_t stamp = stampNanoseconds(), next = stampNanoseconds();
    const uint64_t after = nowNanoseconds();
    if (stamp + kBackwardNs < last || next + kBackwardNs < stamp) backward++;
    if (stamp + kToleranceNs < before || next > after + kToleranceNs) outside++;
    last = next;
  }
  EXPECT(backward == 0);
  EXPECT(outside == 0);
}

}  // namespace

TEST(stamps_are_of_the_monotonic_clock) { readOften(); }
TEST(threads_share_one_clock_for_stamps) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; i++) threads.emplace_back(readOften);
  for (std::thread& thread : threads) thread.join();
}

TEST_MAIN
