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

/** For whom the stalled ranks of a host wait. A kernel does not say for whom: perhaps for anyone. */
interface Awaited {
  readonly ranks: ReadonlySet<number>;
  readonly perhapsAnyone: boolean;
}

export class Leavers {
  readonly #gone = new Map<number, Gone>();
  /** Per host, from its latest report. */
  readonly #awaited = new Map<number, Awaited>();

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
    return [...this.#awaited].flatMap(([host, { ranks, perhapsAnyone }]) =>
      perhapsAnyone || ranks.has(rank) ? [host] : [],
    );
  }

  /** Records that ranks of `host` have stalled. Returns the ranks, of `ranks` in all, for which they may wait. */
  await(host: number, all: readonly Calls[], ranks: number): ReadonlySet<number> {
    const named = new Set(all.flatMap(({ waitingFor }) => (waitingFor === null ? [] : [waitingFor])));
    const awaited = { ranks: named, perhapsAnyone: all.some(({ waitingFor }) => waitingFor === null) };
    this.#awaited.set(host, awaited);
    return ranksOf(awaited, ranks);
  }

  /** All ranks, of `ranks` in all, for which a stalled rank may wait. */
  awaited(ranks: number): ReadonlySet<number> {
    return new Set([...this.#awaited.values()].flatMap((awaited) => [...ranksOf(awaited, ranks)]));
  }
}

function ranksOf({ ranks, perhapsAnyone }: Awaited, all: number): ReadonlySet<number> {
  return perhapsAnyone ? new Set(Array.from({ length: all }, (_, rank) => rank)) : ranks;
}
