/** Says who is late once it is so in three windows in a row, again when it is twice as late, and when it ends. */
import type { Lateness } from './lateness.ts';

const WINDOWS = 3;

type News = 'begins' | 'doubles' | 'ends';

interface Known {
  readonly subject: string;
  readonly last: Lateness;
  /** Windows in a row that have it, or, once it was said, that lack it. */
  readonly row: number;
  /** How late it was when it was said; null: it was not. */
  readonly saidMs: number | null;
}

export class StragglerTracker {
  #known: Known | null = null;

  /** What there is to say after one more window of a communicator. */
  add(found: Lateness | null): { readonly news: News; readonly lateness: Lateness } | null {
    const known = this.#known;
    const subject = found?.ranks.join() ?? '';
    if (found !== null && known?.subject === subject) return this.#again(known, found);
    if (known !== null && known.saidMs !== null) {
      const row = known.row + 1;
      if (row < WINDOWS) this.#known = { ...known, row };
      else this.#known = found === null ? null : { subject, last: found, row: 1, saidMs: null };
      return row < WINDOWS ? null : { news: 'ends', lateness: known.last };
    }
    this.#known = found === null ? null : { subject, last: found, row: 1, saidMs: null };
    return null;
  }

  #again(known: Known, lateness: Lateness): { readonly news: News; readonly lateness: Lateness } | null {
    if (known.saidMs !== null) {
      const isDouble = lateness.latenessMs >= 2 * known.saidMs;
      this.#known = { ...known, last: lateness, row: 0, saidMs: isDouble ? lateness.latenessMs : known.saidMs };
      return isDouble ? { news: 'doubles', lateness } : null;
    }
    const row = known.row + 1;
    const isSure = row >= WINDOWS;
    this.#known = { ...known, last: lateness, row: isSure ? 0 : row, saidMs: isSure ? lateness.latenessMs : null };
    return isSure ? { news: 'begins', lateness } : null;
  }
}
