/** Finds ranks of one communicator whose calls differ, from the rolling hashes of collectives that two ranks both remember. */
import type { Calls } from '../messages/calls.ts';

type Hashes = Pick<Calls, 'count' | 'hashes'>;

export interface Mismatch<Some extends Hashes> {
  /** Number of the first collective that is known to differ, from 1. */
  readonly at: number;
  readonly one: Some;
  readonly other: Some;
}

/** Compares all ranks with the one that has called fewest collectives. */
export function findMismatch<Some extends Hashes>(all: readonly Some[]): Mismatch<Some> | null {
  const [one, ...others] = all.toSorted((a, b) => a.count - b.count);
  for (const other of one === undefined ? [] : others) {
    if (one !== undefined && differ(one, other, one.count)) {
      let at = one.count;
      while (differ(one, other, at - 1)) at--;
      return { at, one, other };
    }
  }
  return null;
}

/** `name` describes a rank. Mismatched calls that do not block are found later, when the ranks no longer remember the first difference. */
export function describeMismatch<Some extends Calls>(
  { at, one, other }: Mismatch<Some>,
  name: (calls: Some) => string,
): string {
  const exact = at === 1 || [one, other].every((calls) => hashOf(calls, at - 1) !== undefined);
  const where = exact
    ? 'from the communicator’s collective number'
    : 'at or before the communicator’s collective number';
  const describe = (calls: Some): string =>
    exact && calls.count === at
      ? `${name(calls)} called ${calls.last}`
      : `${name(calls)} is at number ${calls.count}, ${calls.last}`;
  return `the ranks’ calls differ ${where} ${at}: ${describe(one)}; ${describe(other)}`;
}

/** Maximum of remembered call numbers per communicator; its ranks rarely wait at more at the same time. */
const MAX_CALLS = 64;

/** Compares calls of ranks on different hosts, read at different times; keeps one call per number for the comparison. */
export class CallComparison<Some extends Calls> {
  #known: Some[] = [];

  /** Records calls; returns their first mismatch with recorded ones, or null. */
  add(all: readonly Some[]): Mismatch<Some> | null {
    for (const calls of all) {
      for (const known of this.#known) {
        const mismatch = findMismatch([known, calls]);
        if (mismatch !== null) return mismatch;
      }
      if (!this.#known.some(({ count }) => count === calls.count))
        this.#known = [...this.#known, calls].toSorted((a, b) => a.count - b.count).slice(-MAX_CALLS);
    }
    return null;
  }
}

function differ(one: Hashes, other: Hashes, number: number): boolean {
  const [here, there] = [hashOf(one, number), hashOf(other, number)];
  return here !== undefined && there !== undefined && here !== there;
}

export function hashOf({ count, hashes }: Hashes, number: number): number | undefined {
  return hashes[count - number];
}
