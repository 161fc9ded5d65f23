/**
 * Which failure decides the job: the earliest that we did not cause ourselves; of equally early ones that of the lowest rank.
 * A rank that others lacked is the cause of their ends. Failures of one turn of the event loop are judged together, because they were under way before we could react to any.
 */
import type { Failure } from './failure.ts';

interface Entry {
  readonly failure: Failure;
  /** Milliseconds since 1970, by the clock of its host. */
  readonly time: number;
}

export class FailurePolicy {
  readonly #entries: Entry[] = [];
  #primary: Failure | null = null;

  get any(): boolean {
    return this.#entries.length > 0;
  }

  /** Null until `decide` was called after a failure. */
  get primary(): Failure | null {
    return this.#primary;
  }

  /** The primary failure first, then the others in the order in which they came. */
  get failures(): readonly Failure[] {
    const all = this.#entries.map((entry) => entry.failure);
    return this.#primary === null ? all : [this.#primary, ...all.filter((failure) => failure !== this.#primary)];
  }

  record(failure: Failure, time: number): void {
    this.#entries.push({ failure, time });
  }

  /** Chooses among what has been recorded so far; later failures never displace the choice. */
  decide(): Failure | null {
    if (this.#primary !== null) return this.#primary;
    const [first] = this.#entries.toSorted((one, other) => one.time - other.time || rankOf(one) - rankOf(other));
    this.#primary = first === undefined ? null : this.#causeOf(first.failure);
    return this.#primary;
  }

  /** A rank that others lacked precedes their ends, whatever the clocks of their hosts say. */
  #causeOf(failure: Failure): Failure {
    if (failure.type !== 'rank-exit' && failure.type !== 'rank-signal') return failure;
    const missing = this.#entries.map((entry) => entry.failure).filter(({ type }) => type === 'rank-missing');
    if (missing.some((other) => 'rank' in other && other.rank === failure.rank)) return failure;
    return missing[0] ?? failure;
  }
}

/** What is no rank's failure comes before what is. */
function rankOf({ failure }: Entry): number {
  return 'rank' in failure ? failure.rank : -1;
}
