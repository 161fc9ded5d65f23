// Stops ranks one after another for as long as a reader (reader.h) copies what it needs. It understands nothing of what
// they hold. Runs in a thread of the guardian: the kernel lets a process be traced by its ancestors (Yama,
// ptrace_scope 1), and the end of a thread detaches whatever it traces.
#pragma once
#include <cstdint>
#include <vector>

#include "stack/protocol.h"

namespace ncclrun::stack {

struct Target {
  uint32_t rank = 0;
  pid_t process = 0;
};

// Returns when all targets are done, or at the deadline (CLOCK_MONOTONIC, ms). `reader`: the socket, which is closed
// then.
void traceAll(const std::vector<Target>& targets, int reader, uint64_t deadlineMs);

}  // namespace ncclrun::stack
