// What /proc shows of a process that is starting, and whether it got on since the last look.
#pragma once
#include <stdint.h>
#include <sys/types.h>

namespace ncclrun::watchdog {

struct Sample {
  char state;            // R, S, D, T …
  uint64_t majorFaults;  // pages that came from a disk or a network
  uint64_t processorMs;
  uint64_t readBytes;  // 0 where the kernel does not count it
};

// False: there is no such process any more.
bool look(pid_t pid, Sample& out);

enum class Stall { none, stopped, waiting, looping };

// Tells a process that is slow from one that stands still: waiting for a processor is no fault of its own, and reading
// or computing is progress. Only computing on and on, without reading, is not.
class Progress {
 public:
  // A process that stands still for `stillMs`, or computes for `processorMs` without reading, will not come up.
  Progress(uint64_t stillMs, uint64_t processorMs) : stillLimitMs_(stillMs), processorLimitMs_(processorMs) {}

  // `elapsedMs`: time since the last look that counts.
  Stall judge(const Sample& now, uint64_t elapsedMs);

 private:
  const uint64_t stillLimitMs_;
  const uint64_t processorLimitMs_;
  uint64_t stillMs_ = 0;
  uint64_t processorMsAtRead_ = 0;
  Sample last_ = {};
};

}  // namespace ncclrun::watchdog
