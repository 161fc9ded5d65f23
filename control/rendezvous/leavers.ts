/**
 * Ranks that are gone from a communicator that others keep using. The hub notifies only the hosts whose ranks wait for one of them, now or
 * later, because at a job's end all ranks leave.
 */
import type { NcclResult } from '../messages/bootstrap.ts';
import type { Calls } from '../messages/calls.ts';
import type { RendezvousFailure } from './failure.ts';

/** Departure of a rank. After an orderly one `result` is invalidUsage and the sentence names the rank; else both are the failure of those that wait for it. */
export interface Gone extends RendezvousFailure {
  readonly result: NcclResult;
  /** Rank to blame when others fail because of this, as in a breach. */
  readonly blame: number;
}

export class Leavers {
  readonly #gone = new Map<number, Gone>();
  /** Per host, the ranks for which its ranks have stalled, from its latest report. */
  readonly #awaited = new Map<number, ReadonlySet<number>>();

  get(rank: number): Gone | undefined {
    return this.#gone.get(rank);
  }

  /** Gone ranks, in the order of the reports. */
  get all(): ReadonlyMap<number, Gone> {
    return this.#gone;
  }

  /** Records a departure; the first report about a rank counts. Returns the hosts whose ranks wait for it. */
  add(rank: number, gone: Gone): number[] {
    if (this.#gone.has(rank)) return [];
    this.#gone.set(rank, gone);
    return this.awaiting(rank);
  }

  awaiting(rank: number): number[] {
    return [...this.#awaited].flatMap(([host, ranks]) => (ranks.has(rank) ? [host] : []));
  }

  /** Records that ranks of `host` have stalled. Returns the ranks for which they wait. */
  await(host: number, all: readonly Calls[]): ReadonlySet<number> {
    const ranks = new Set(all.flatMap(({ waitingFor }) => (waitingFor === null ? [] : [waitingFor])));
    this.#awaited.set(host, ranks);
    return ranks;
  }

  /** All ranks for which a stalled rank waits. */
  get awaited(): ReadonlySet<number> {
    return new Set([...this.#awaited.values()].flatMap((ranks) => [...ranks]));
  }
}
