// The barrier of a host's ranks through its segment, on the calling thread.
#pragma once
#include "core/patience.h"
#include "core/segment.h"
#include "core/telemetry.h"

namespace ncclrun {

// Success, or what interrupted it. `own`: this rank's doorbell.
inline Status meetOnHost(const Segment& segment, uint32_t localRanks, Interrupt& interrupt, Doorbell& own,
                         uint64_t spinNanoseconds, Telemetry telemetry) {
  NodeBarrier& barrier = segment.barrier();
  const uint32_t generation = barrier.generation.load(std::memory_order_seq_cst);
  if (interrupt.raised()) return interrupt.status();
  if (barrier.arrived.fetch_add(1, std::memory_order_seq_cst) + 1 == localRanks) {
    barrier.arrived.store(0, std::memory_order_seq_cst);
    barrier.generation.fetch_add(1, std::memory_order_seq_cst);
    for (uint32_t local = 0; local < localRanks; local++) ring(segment.doorbell(local));
    return {};
  }
  const uint64_t since = nowNanoseconds();
  bool said = false;  // an agent that cannot tell how a rank died looks whether others wait
  Patience patience(interrupt, own, spinNanoseconds);
  const bool met = patience.wait([&] { return barrier.generation.load(std::memory_order_seq_cst) != generation; },
                                 [&] { said = telemetry.waitingIdly(since) || said; });
  if (said) telemetry.rested();
  return met ? Status{} : interrupt.status();
}

}  // namespace ncclrun
