// CLOCK_MONOTONIC for time stamps, in nanoseconds, by the processor's time stamp counter where Linux itself trusts it:
// a read takes less than half of the time of clock_gettime(). It is compared with that clock every 50 ms, so it is
// wrong by what the clock's rate changes in between, which is far below a microsecond. Where a comparison makes it
// slower, a thread may see it go backward by less than a microsecond.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/clock.h"

namespace ncclrun {

#if defined(__x86_64__)

class StampClock {
 public:
  static uint64_t now() {
    for (;;) {
      const uint32_t sequence = sequence_.load(std::memory_order_acquire);
      const Line& line = lines_[sequence % 2];
      const uint64_t ticks = __builtin_ia32_rdtsc();
      const uint64_t passed = ticks - line.ticks.load(std::memory_order_relaxed);
      const uint64_t time = line.at(passed);
      const uint64_t limit = line.limit.load(std::memory_order_relaxed);
      std::atomic_thread_fence(std::memory_order_acquire);
      if (sequence_.load(std::memory_order_relaxed) != sequence) continue;
      return passed < limit ? time : compared(time, limit != 0);
    }
  }

 private:
  // From one comparison of the two clocks to the next.
  struct Line {
    std::atomic<uint64_t> ticks{0}, nanoseconds{0};  // where it begins
    std::atomic<uint64_t> rate{0};                   // nanoseconds in 2^32 ticks
    std::atomic<uint64_t> limit{0};                  // ticks after which they are compared again; 0: not yet known

    uint64_t at(uint64_t passed) const {
      return nanoseconds.load(std::memory_order_relaxed) +
             uint64_t((unsigned __int128)(passed)*rate.load(std::memory_order_relaxed) >> 32);
    }
  };

  // Compares the two clocks, if no other thread does. time: by the line so far, if isKnown.
  static uint64_t compared(uint64_t time, bool isKnown);
  static uint64_t adopt(uint64_t ticks, uint64_t real);

  // The one in use is that of the sequence's parity; a thread that holds busy_ writes the other one.
  static Line lines_[2];
  static inline std::atomic<uint32_t> sequence_{0};
  static inline std::atomic<bool> busy_{false};
};

inline StampClock::Line StampClock::lines_[2];

inline uint64_t stampNanoseconds() { return StampClock::now(); }

#else

inline uint64_t stampNanoseconds() { return nowNanoseconds(); }

#endif

}  // namespace ncclrun
