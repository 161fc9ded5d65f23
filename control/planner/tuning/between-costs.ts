/** What ranks of several hosts and the network between them cost: constants of the model in between.ts. */
import type { AlgorithmName } from '../../plan/types.ts';

export interface BetweenCosts {
  /** Microseconds before an operation's first step. */
  readonly before: number;
  readonly beforeTree: number;
  /** Microseconds of a transfer from a rank to one of another host, and of its own. */
  readonly hopBetween: number;
  readonly hopInside: number;
  /** Microseconds of each further peer that a rank serves: of another host, more where it reduces, and of its own. */
  readonly peer: number;
  readonly reducedPeer: number;
  readonly peerInside: number;
  /** Bytes per microsecond between hosts: of a rank's channel, of a rank, and of all ranks of a host. */
  readonly perChannel: number;
  readonly perRank: number;
  readonly perHost: number;
  /** Bytes per microsecond that a rank moves inside its host beside that; Infinity: at the same time. */
  readonly insideRate: number;
  /** Time until all slots are on their way, and how many bytes on a connection take all of it. */
  readonly fillMicroseconds: number;
  readonly fillBytes: number;
}

/** Factors of predicted times, where measurements say how far the model is off. */
export interface Correction {
  readonly latency: number;
  readonly bandwidth: number;
}
export type Corrections = Readonly<Partial<Record<AlgorithmName, Correction>>>;

/**
 * GPUs over sockets, from the tables of two and four H100 and H200 that are two hosts of one machine (docs/performance-gpus.md): 84 times of rings, rails
 * and one-shot reductions, of 8 bytes to 256 MiB. Predicted times are 0.62 to 1.43 of these, eight in ten of them 0.8 to 1.2
 * (`node bench/between-hosts.ts`). Trees, and more than two hosts, follow from the model and were not measured on GPUs.
 */
export const GPU_COSTS: BetweenCosts = {
  before: 14,
  beforeTree: 24,
  hopBetween: 17,
  hopInside: 3,
  peer: 5,
  reducedPeer: 3,
  peerInside: 1,
  perChannel: 1800,
  perRank: 14_500,
  perHost: 17_500,
  insideRate: Infinity,
  fillMicroseconds: 50,
  fillBytes: 80 * 1024,
};

/**
 * The same under protocol LL, whose kernels wait for no fence and read what arrives as they poll, and whose proxies copy every byte once more: two H200 that
 * are two hosts of one machine took 8 µs less than under Simple up to 512 bytes, and as long at 4 KiB. A proxy moved 400 bytes per microsecond; half of
 * that is said here, so that LL is chosen only where it was measured to gain. `hopInside` is an estimate.
 */
export const GPU_LL_COSTS: BetweenCosts = {
  before: 9,
  beforeTree: 19,
  hopBetween: 14,
  hopInside: 1.2,
  peer: 5,
  reducedPeer: 1,
  peerInside: 0.3,
  perChannel: 200,
  perRank: 200,
  perHost: 17_500,
  insideRate: Infinity,
  fillMicroseconds: 0,
  fillBytes: 1,
};

/**
 * Ranks on processors over sockets, whose one core does everything, one after the other: two ranks that are two hosts of a machine with two cores
 * (`ncclrun tune --simulate-hosts 2 -n 2`). A transfer took 13 µs in a quiet moment and 33 beside other work, and a core moved 1.2 to 1.7 GB/s each
 * way. Predicted times are 0.45 to 1.71 of 86 measured ones (`node bench/between-hosts.ts`). Left out of these are small operations with a root, which
 * overlap where they are queued and so take less, and small all_reduces of a state in which one takes 560 µs, about as long as a rank polls: ranks on a
 * busy machine get into it unless each is bound to a core of its own (13 to 68 µs then). Inside a host: device/host-prediction.ts.
 */
export const HOST_COSTS: BetweenCosts = {
  before: 2,
  beforeTree: 2,
  hopBetween: 18,
  hopInside: 0.5,
  peer: 5,
  reducedPeer: 0,
  peerInside: 0.4,
  perChannel: 1550,
  perRank: 1550,
  perHost: Infinity,
  insideRate: 13_000,
  fillMicroseconds: 0,
  fillBytes: 1,
};

/**
 * An aggregator's thread, in processor time of its own, on the machine of HOST_COSTS over loopback. 8 bytes of each of 2 to 16 members took it 10.5 to
 * 12.9 µs a member, which it receives from and sends to; 13 to 14.6 beside other work. Of 16 MiB of floats from each member it received, reduced and sent
 * 4100 bytes of contributions per microsecond with 2 members, 3420 with 4 and 3200 with 8; 2600 to 4500 beside other work.
 */
export const AGGREGATOR_COSTS = { perMember: 11, bytesPerMicrosecond: 3300 } as const;

/** Ranks on processors: direct variants use a connection per pair; beyond this many ranks a ring needs less memory and fewer messages. */
export const DIRECT_MAX_RANKS_ON_HOSTS = 32;
