/** For how long a slot is left alone whose GPU another job holds: the longer, the more often tasks have found it so. */
import type { BusySlot } from '../attempt/records.ts';
import type { Placement } from '../model/capacity.ts';

const FIRST_MS = 30_000;
const LONGEST_MS = 600_000;

interface LeftAlone extends BusySlot {
  /** Milliseconds since 1970. */
  readonly until: number;
}

export class BusyGpus {
  /** By slot: how often in a row. */
  readonly #times = new Map<string, number>();

  /** After an attempt on `placement`, which found `busy` slots; none where its ranks have started. */
  afterEnd(placement: Placement, busy: readonly BusySlot[], now: number): readonly LeftAlone[] {
    if (busy.length === 0)
      for (const { host, slots } of placement) for (const slot of slots) this.#times.delete(`${host}:${slot}`);
    return busy.map(({ host, slot }) => {
      const times = this.#times.get(`${host}:${slot}`) ?? 0;
      this.#times.set(`${host}:${slot}`, times + 1);
      return { host, slot, until: now + Math.min(LONGEST_MS, FIRST_MS * 2 ** times) };
    });
  }
}
