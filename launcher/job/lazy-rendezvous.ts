/** The rendezvous of an attempt. Few jobs need one: the first frame for it, or the loss of a host, makes it. */
import type { Rendezvous } from './job-parts.ts';
import { describeOver } from './rank.ts';
import type { RankTable } from './rank-table.ts';

export class LazyRendezvous {
  #make: (() => Rendezvous) | null = null;
  #made: Rendezvous | null = null;
  #ranks: RankTable | null = null;

  /** `make` is called once, if ever; `ranks` are then those that it serves. */
  expect(make: () => Rendezvous, ranks: RankTable): void {
    this.#make = make;
    this.#ranks = ranks;
  }

  /** Null before `expect`. */
  get(): Rendezvous | null {
    if (this.#made !== null || this.#make === null) return this.#made;
    this.#made = this.#make();
    for (const [rank, state] of this.#ranks?.states.entries() ?? []) {
      const how = describeOver(state);
      if (how !== null) this.#made.rankEnded(rank, how);
    }
    return this.#made;
  }

  /** One that is made later learns it from the rank's state. */
  rankEnded(rank: number, sentence: string): void {
    this.#made?.rankEnded(rank, sentence);
  }

  close(): void {
    this.#made?.close();
  }
}
