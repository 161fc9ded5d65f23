#pragma once
#include <cstdint>
#include <ctime>

namespace ncclrun::guardian {

inline uint64_t nanoseconds(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}
// Since 1970.
inline uint64_t realtimeNs() { return nanoseconds(CLOCK_REALTIME); }
// Does not count while the machine sleeps.
inline uint64_t monotonicMs() { return nanoseconds(CLOCK_MONOTONIC) / 1'000'000; }

}  // namespace ncclrun::guardian
