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

uint64_t StampClock::compared(uint64_t time, bool isKnown) {
  static const bool trusted = isTrusted();
  if (!trusted) return nowNanoseconds();
  const uint64_t first = __builtin_ia32_rdtsc();
  const uint64_t real = nowNanoseconds();
  const uint64_t ticks = __builtin_ia32_rdtsc();
  const uint64_t otherwise = isKnown ? time : real;
  // The processor may have done something else in between, and another thread may be at it.
  if (ticks - first > kMaxReadingTicks || busy_.exchange(true, std::memory_order_acquire)) return otherwise;
  const uint64_t adopted = adopt(ticks, real);
  busy_.store(false, std::memory_order_release);
  return adopted != 0 ? adopted : otherwise;
}

// 0: nothing was adopted.
uint64_t StampClock::adopt(uint64_t ticks, uint64_t real) {
  const uint32_t sequence = sequence_.load(std::memory_order_relaxed);
  const Line& before = lines_[sequence % 2];
  Line& next = lines_[(sequence + 1) % 2];
  const uint64_t began = before.nanoseconds.load(std::memory_order_relaxed);
  const uint64_t limit = before.limit.load(std::memory_order_relaxed);
  const uint64_t passed = ticks - before.ticks.load(std::memory_order_relaxed);
  uint64_t ahead = 0, rate = 0, lasts = 0;
  if (began != 0) {
    if (limit == 0 && real - began < kFirstComparedNs) return 0;
    if (limit != 0 && passed < limit) return 0;  // another thread was first
    if (int64_t(passed) <= 0) return 0;          // read on a processor that is a little behind
    const uint64_t predicted = before.at(passed);
    // After a suspension the two clocks say nothing about each other.
    if (limit != 0 && predicted > real && predicted - real < kMaxAheadNs) ahead = predicted - real;
    const auto measured = uint64_t(((unsigned __int128)(real - began) << 32) / passed);
    // What it is ahead is made good until the next comparison, instead of going backward.
    rate = measured - uint64_t((unsigned __int128)(measured)*ahead / kComparedEveryNs);
    lasts = uint64_t(((unsigned __int128)(kComparedEveryNs) << 32) / std::max<uint64_t>(measured, 1));
  }
  // Readers that saw this line two comparisons ago look at the sequence again.
  std::atomic_thread_fence(std::memory_order_release);
  next.ticks.store(ticks, std::memory_order_relaxed);
  next.nanoseconds.store(real + ahead, std::memory_order_relaxed);
  next.rate.store(rate, std::memory_order_relaxed);
  next.limit.store(lasts, std::memory_order_relaxed);
  sequence_.store(sequence + 1, std::memory_order_release);
  return real + ahead;
}

}  // namespace ncclrun

#endif
