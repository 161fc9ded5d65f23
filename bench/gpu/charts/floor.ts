/** What no schedule could be faster than on the machine: as bench/gpu/report.c says it. */
import type { Limits, MeasuredCollective, Timing } from './results.ts';

/** Time × this is what goes over each GPU's link (nccl-tests, doc/PERFORMANCE.md). */
export function busFactor(collective: MeasuredCollective, ranks: number): number {
  const others = (ranks - 1) / ranks;
  if (collective === 'all_reduce') return 2 * others;
  return collective === 'broadcast' || collective === 'sendrecv' ? 1 : others;
}

/** Reductions have to go through SMs; what only moves may take the faster way. GB/s. */
export function ceilingOf(collective: MeasuredCollective, { copies, stores }: Limits): number {
  const reduces = collective === 'all_reduce' || collective === 'reduce_scatter';
  return reduces ? stores : Math.max(copies, stores);
}

/** Microseconds: of a launch, or of the bytes. */
export function floorOf(collective: MeasuredCollective, timing: Timing, bytes: number, limits: Limits): number {
  const ceiling = ceilingOf(collective, limits);
  const moving = ceiling > 0 ? (bytes * busFactor(collective, limits.ranks)) / ceiling / 1000 : 0;
  return Math.max(limits.launch[timing], moving);
}
