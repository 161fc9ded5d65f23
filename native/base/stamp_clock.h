// CLOCK_MONOTONIC for time stamps, in nanoseconds, by the processor's time stamp counter where Linux itself trusts it:
// a read takes less than half of the time of clock_gettime(). It is compared with that clock every 50 ms, so it is
// wrong by what the clock's rate changes in between, which is far below a microsecond. It never goes backward.
#pragma once
#include <atomic>
#include <cstdint>

#include "base/clock.h"

namespace ncclrun {

#if defined(__x86_64__)

class StampClock {
 public:
  static uint64_t now() {
    const uint32_t sequence = sequence_.load(std::memory_order_acquire);
    const uint64_t ticks = __builtin_ia32_rdtsc();
    const uint64_t passed = ticks - ticks_.load(std::memory_order_relaxed);
    const uint64_t time = nanoseconds_.load(std::memory_order_relaxed) +
                          uint64_t((unsigned __int128)(passed)*rate_.load(std::memory_order_relaxed) >> 32);
    const uint64_t limit = limit_.load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (passed < limit && sequence % 2 == 0 && sequence_.load(std::memory_order_relaxed) == sequence) return time;
    return compared();
  }

 private:
  // Compares the two clocks, if no other thread does.
  static uint64_t compared();
  static uint64_t adopt(uint64_t ticks, uint64_t real);

  // A reading of both clocks, and what follows from the one before; `sequence_` is odd while a thread writes them.
  static inline std::atomic<uint32_t> sequence_{0};
  static inline std::atomic<uint64_t> ticks_{0}, nanoseconds_{0};
  static inline std::atomic<uint64_t> rate_{0};   // nanoseconds in 2^32 ticks
  static inline std::atomic<uint64_t> limit_{0};  // ticks after which they are compared again; 0: not yet known
};

inline uint64_t stampNanoseconds() { return StampClock::now(); }

#else

inline uint64_t stampNanoseconds() { return nowNanoseconds(); }

#endif

}  // namespace ncclrun
