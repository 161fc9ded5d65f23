/**
 * Ranks that are gone from a communicator while others go on with it. A rank that waits for one of them has to be told, now or later; as few hosts as
 * that concerns hear of it, since at a job's end all ranks leave.
 */
import type { NcclResult } from '../messages/bootstrap.ts';
import type { Calls } from '../messages/calls.ts';
import type { RendezvousFailure } from './failure.ts';

/** How a rank went: `result` invalidUsage, with who it is as the sentence, where it left in order; else what those who wait for it are told. */
export interface Gone extends RendezvousFailure {
  readonly result: NcclResult;
  /** As in a breach: whose fault it is when others fail because of this. */
  readonly blame: number;
}

export class Leavers {
  readonly #gone = new Map<number, Gone>();
  /** By host: for whom its ranks wait in vain, as it has said last. */
  readonly #awaited = new Map<number, ReadonlySet<number>>();

  get(rank: number): Gone | undefined {
    return this.#gone.get(rank);
  }

  /** Those that are gone, in the order in which that became known. */
  get all(): ReadonlyMap<number, Gone> {
    return this.#gone;
  }

  /** What is said of a rank first counts. Returns the hosts whose ranks wait for it. */
  add(rank: number, gone: Gone): number[] {
    if (this.#gone.has(rank)) return [];
    this.#gone.set(rank, gone);
    return this.awaiting(rank);
  }

  awaiting(rank: number): number[] {
    return [...this.#awaited].flatMap(([host, ranks]) => (ranks.has(rank) ? [host] : []));
  }

  /** Ranks of `host` wait in vain. Returns for whom. */
  await(host: number, all: readonly Calls[]): ReadonlySet<number> {
    const ranks = new Set(all.flatMap(({ waitingFor }) => (waitingFor === null ? [] : [waitingFor])));
    this.#awaited.set(host, ranks);
    return ranks;
  }

  /** All that is awaited. */
  get awaited(): ReadonlySet<number> {
    return new Set([...this.#awaited.values()].flatMap((ranks) => [...ranks]));
  }
}
