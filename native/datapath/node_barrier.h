// The barrier of a host's ranks through its segment, on the calling thread.
#pragma once
#include "datapath/gone_peers.h"
#include "datapath/spin_wait.h"
#include "datapath/telemetry.h"
#include "plan/plan_view.h"
#include "plan/segment.h"

namespace ncclrun {

// The ranks of the barrier.
struct LocalRanks {
  const PlanView& plan;
  const Segment& segment;
  uint32_t rank;  // this one
  const GonePeers& gonePeers;
};

// Why a rank of this host enters no barrier any more, and which rank; success if all may.
inline Status whoIsGone(const LocalRanks& ranks, uint32_t& gone) {
  for (uint32_t peer = 0; peer < ranks.plan.header().ranks; peer++) {
    if (peer == ranks.rank || !ranks.plan.sameHost(peer)) continue;
    gone = peer;
    const uint64_t left = ranks.segment.doorbell(ranks.plan.peer(peer).localIndex).left.load(std::memory_order_seq_cst);
    if (left != 0 && left != kAborted) {
      return {ncclInvalidUsage, "the ranks’ calls differ: " + ranks.plan.describe(ranks.rank) +
                                    " called ncclrunNodeBarrier, which " + ranks.plan.describe(peer) +
                                    " did not before ncclCommFinalize"};
    }
    NCCLRUN_TRY(ranks.gonePeers.why(peer));
    if (left == kAborted) return abortedBy(ranks.plan.describe(peer));
  }
  return {};
}

// Success, or what interrupted it. `own`: this rank's doorbell.
inline Status hostBarrier(const LocalRanks& ranks, Interrupt& interrupt, Doorbell& own, uint64_t spinNanoseconds,
                          Telemetry telemetry) {
  const Segment& segment = ranks.segment;
  const uint32_t localRanks = ranks.plan.header().localRanks;
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
  bool reported = false;  // an agent that does not know how a rank died checks whether others wait
  SpinWait spin(interrupt, own, spinNanoseconds);
  const auto isOver = [&] { return barrier.generation.load(std::memory_order_seq_cst) != generation; };
  const bool met = spin.wait(isOver, [&] {
    reported = telemetry.waitingIdly(since) || reported;
    uint32_t gone = Interrupt::kNobody;
    const Status why = whoIsGone(ranks, gone);
    if (why.ok() || isOver()) return;  // ranks that were inside may have left by now
    interrupt.raise(why, why.code == ncclInvalidUsage ? Interrupt::kNobody : gone,
                    why.code == ncclInvalidUsage ? FailureScope::all : FailureScope::alone);
  });
  if (reported) telemetry.rested();
  return met ? Status{} : interrupt.status();
}

}  // namespace ncclrun
