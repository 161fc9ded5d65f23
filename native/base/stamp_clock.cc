#include "base/stamp_clock.h"

#if defined(__x86_64__)

#include <algorithm>
#include <fstream>
#include <string>

namespace ncclrun {
namespace {

constexpr uint64_t kComparedEveryNs = 50'000'000;
constexpr uint64_t kFirstComparedNs = 5'000'000;
constexpr uint64_t kMaxAheadNs = 100'000;
constexpr uint64_t kMaxReadingTicks = 3'000;  // about a microsecond

// Linux has found that all processors count alike, at a rate that no power state changes.
bool isTrusted() {
  std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string name;
  return bool(std::getline(file, name)) && name == "tsc";
}

}  // namespace

uint64_t StampClock::compared() {
  static const bool trusted = isTrusted();
  uint32_t sequence = sequence_.load(std::memory_order_relaxed);
  if (!trusted || sequence % 2 == 1) return nowNanoseconds();
  const uint64_t first = __builtin_ia32_rdtsc();
  const uint64_t real = nowNanoseconds();
  const uint64_t ticks = __builtin_ia32_rdtsc();
  // The processor may have done something else in between.
  if (ticks - first > kMaxReadingTicks) return real;
  if (!sequence_.compare_exchange_strong(sequence, sequence + 1, std::memory_order_acquire)) return real;
  std::atomic_thread_fence(std::memory_order_release);
  const uint64_t time = adopt(ticks, real);
  sequence_.store(sequence + 2, std::memory_order_release);
  return time;
}

uint64_t StampClock::adopt(uint64_t ticks, uint64_t real) {
  const uint64_t before = ticks_.load(std::memory_order_relaxed), limit = limit_.load(std::memory_order_relaxed);
  const uint64_t began = nanoseconds_.load(std::memory_order_relaxed), passed = ticks - before;
  uint64_t ahead = 0;
  if (before != 0) {
    if (limit == 0 && real - began < kFirstComparedNs) return real;
    if (limit != 0 && passed < limit) return real;  // another thread was first
    if (int64_t(passed) <= 0) return real;          // read on a processor that is a little behind
    const uint64_t predicted =
        began + uint64_t((unsigned __int128)(passed)*rate_.load(std::memory_order_relaxed) >> 32);
    // After a suspension the two clocks say nothing about each other.
    if (limit != 0 && predicted > real && predicted - real < kMaxAheadNs) ahead = predicted - real;
    const auto measured = uint64_t(((unsigned __int128)(real - began) << 32) / passed);
    // What it is ahead is made good until the next comparison, instead of going backward.
    const auto slower = uint64_t((unsigned __int128)(measured)*ahead / kComparedEveryNs);
    rate_.store(measured - slower, std::memory_order_relaxed);
    limit_.store(uint64_t(((unsigned __int128)(kComparedEveryNs) << 32) / std::max<uint64_t>(measured, 1)),
                 std::memory_order_relaxed);
  }
  ticks_.store(ticks, std::memory_order_relaxed);
  nanoseconds_.store(real + ahead, std::memory_order_relaxed);
  return real + ahead;
}

}  // namespace ncclrun

#endif
