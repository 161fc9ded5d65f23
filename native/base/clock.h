// One clock for spins, telemetry and timeouts: CLOCK_MONOTONIC in nanoseconds.
#pragma once
#include <time.h>

#include <cstdint>

namespace ncclrun {

inline uint64_t nowNanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return uint64_t(now.tv_sec) * 1000000000u + uint64_t(now.tv_nsec);
}

// Hints to the core that this is a polling loop.
inline void pauseBriefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace ncclrun
