/**
 * What the host device's plans are made of. Sizes in bytes, times in nanoseconds. Least of several runs of `ncclrun perf all_reduce --plan`
 * with one variant forced, 2 and 4 ranks in shared memory on 2 cores; where `ncclrun tune` has
 * measured a machine, its table replaces them.
 */

/** A waiting rank polls this long before it sleeps: about twice what a sleeping thread takes to wake. */
export const SPIN_NANOSECONDS = 50_000;

/** The same between hosts: a peer that has to be woken itself answers after two wake-ups and one network transfer. */
export const SPIN_BETWEEN_HOSTS_NANOSECONDS = 500_000;

/**
 * The same divided by the ranks per core, where the ranks share the cores: a rank that polls offers its core again and again, which costs
 * a tenth of putting it to sleep and waking it (4 ranks on 2 cores, 16 B: 9 µs against 75 to 168). The more ranks, the longer each waits for
 * its turn, and the less polling helps.
 */
export const SHARED_CORE_SPIN_NANOSECONDS = 1_000_000;

/** Slots of a connection: large enough to amortise the hand-over, small enough that all slots of a pair stay in a core's L2 cache. */
export const RING_BUFFER = { steps: 4, stepBytes: 256 * 1024 } as const;
const PAIR_BUFFER = { steps: 4, stepBytes: 256 * 1024 } as const;

/** A rank's connections with all others, both ways, take at most about this much memory: 1,024 ranks have slots of 32 KiB. */
const PAIRS_BYTES = 256 * 1024 * 1024;
const SMALLEST_PAIR_SLOT = 8 * 1024;

export function pairBufferOf(ranks: number): { readonly steps: number; readonly stepBytes: number } {
  const { steps, stepBytes } = PAIR_BUFFER;
  const share = PAIRS_BYTES / (2 * Math.max(ranks - 1, 1) * steps);
  const powerOfTwo = 2 ** Math.floor(Math.log2(share));
  return { steps, stepBytes: Math.min(Math.max(powerOfTwo, SMALLEST_PAIR_SLOT), stepBytes) };
}

export const CHUNK_BYTES = 256 * 1024;

/** Granularity of chunks on the host device: (64 - 32) * 8 bytes. */
export const HOST_THREADS = 64;

/**
 * Inside a host: up to this many bytes, divided by the number of ranks, each rank reads all others' data itself (2 ranks: 64 KiB in 2.9 µs
 * against 3.6 in two steps, 256 KiB in 16 against 12).
 */
export const ONE_SHOT_BYTES_TIMES_RANKS = 128 * 1024;

/**
 * Inside a host: up to this many bytes per rank protocol LL, whose doubled bytes cost more than its single hand-over saves beyond (2 ranks,
 * in place, each operation waited for: 8 B in 1.8 µs against Simple's 2.0, 32 B in 1.5 against 1.8, 128 B alike, 512 B in 2.7 against 2.2).
 */
export const LOW_LATENCY_BYTES = 128;

/**
 * Broadcast and reduce inside a host of so few ranks: up to so many bytes the root itself serves all others, then a ring spreads the work
 * (4 ranks, 64 KiB: broadcast 83 µs against 32, reduce 109 against 44).
 */
export const STAR_MAX_RANKS = 4;
export const STAR_OF_FEW_BYTES = 16 * 1024;
/** With more ranks: only up to so many bytes. */
export const STAR_BYTES = 4 * 1024;

/** Up to so many bytes the logarithmic depth of a tree is worth more than the even load of a ring. */
export const TREE_BYTES = 128 * 1024;
