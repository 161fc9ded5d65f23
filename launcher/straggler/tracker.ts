/** Says what makes a job slower once it is so in three windows in a row, again when it is twice as bad, and when it ends. */

const WINDOWS = 3;

type News = 'begins' | 'doubles' | 'ends';

interface Known<Found> {
  readonly subject: string;
  readonly last: Found;
  /** Windows in a row that have it, or, once it was said, that lack it. */
  readonly row: number;
  /** How bad it was when it was said; null: it was not. */
  readonly said: number | null;
}

interface Described {
  /** Two windows are about the same if this is the same. */
  readonly subject: string;
  /** Twice as much is news. */
  readonly amount: number;
}

export class StragglerTracker<Found> {
  readonly #describe: (found: Found) => Described;
  #known: Known<Found> | null = null;

  constructor(describe: (found: Found) => Described) {
    this.#describe = describe;
  }

  /** What there is to say after one more window. */
  add(found: Found | null): { readonly news: News; readonly found: Found } | null {
    const known = this.#known;
    const subject = found === null ? '' : this.#describe(found).subject;
    if (found !== null && known?.subject === subject) return this.#again(known, found);
    if (known !== null && known.said !== null) {
      const row = known.row + 1;
      if (row < WINDOWS) this.#known = { ...known, row };
      else this.#known = found === null ? null : { subject, last: found, row: 1, said: null };
      return row < WINDOWS ? null : { news: 'ends', found: known.last };
    }
    this.#known = found === null ? null : { subject, last: found, row: 1, said: null };
    return null;
  }

  #again(known: Known<Found>, found: Found): { readonly news: News; readonly found: Found } | null {
    const { amount } = this.#describe(found);
    if (known.said !== null) {
      const isDouble = amount >= 2 * known.said;
      this.#known = { ...known, last: found, row: 0, said: isDouble ? amount : known.said };
      return isDouble ? { news: 'doubles', found } : null;
    }
    const row = known.row + 1;
    const isSure = row >= WINDOWS;
    this.#known = { ...known, last: found, row: isSure ? 0 : row, said: isSure ? amount : null };
    return isSure ? { news: 'begins', found } : null;
  }
}
