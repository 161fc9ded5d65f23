/**
 * Which failure decides the job: the earliest that we did not cause ourselves; of equally early ones that of the lowest rank.
 * A rank that others lacked is the cause of their ends. Failures of one turn of the event loop are judged together, because they were under way before we could react to any.
 *
 * News of two hosts overtake each other: a rank that failed because it lost another one may be heard of first. Where its agent says so
 * (`suspect`), the verdict is open until it is known how the other one fared, or somebody's patience ends.
 */
import type { Failure, RankMissingFailure } from './failure.ts';

interface Entry {
  readonly failure: Failure;
  /** Milliseconds since 1970, by the clock of its host. */
  readonly time: number;
}

export class FailurePolicy {
  #entries: Entry[] = [];
  /** Failures that the other ranks went on without. */
  #survived: Entry[] = [];
  readonly #complete: (failure: Failure, time: number) => Failure;
  /** Rank → the rank it had lost when it failed. */
  readonly #suspects = new Map<number, number>();
  /** Ranks that left others in the lurch: what is said of them if those fail. */
  readonly #departed = new Map<number, RankMissingFailure>();
  #primary: Failure | null = null;

  /** `complete` adds what is known beside a failure when it is judged. */
  constructor(complete = (failure: Failure, _time: number): Failure => failure) {
    this.#complete = complete;
  }

  get any(): boolean {
    return this.#entries.length > 0;
  }

  /** Null until `decide` was called after a failure. */
  get primary(): Failure | null {
    return this.#primary;
  }

  /** The primary failure first, then the others in the order in which they came, those that were survived included. */
  get failures(): readonly Failure[] {
    const all = [...this.#survived, ...this.#entries].map((entry) => entry.failure);
    return this.#primary === null ? all : [this.#primary, ...all.filter((failure) => failure !== this.#primary)];
  }

  /** All failures so far may come of one that has not been heard of yet. */
  get open(): boolean {
    if (this.#primary !== null || this.#entries.some(({ failure }) => !('host' in failure))) return false;
    const first = this.#earliest();
    return first !== undefined && this.#behind(first).type === 'open';
  }

  record(failure: Failure, time: number): void {
    this.#entries.push({ failure, time });
  }

  /** The other ranks go on without who failed. */
  survive(failure: Failure, time: number): Failure {
    const completed = this.#complete(failure, time);
    this.#survived.push({ failure: completed, time });
    return completed;
  }

  /** Nobody is left to go on: what was survived counts like any other failure. */
  recall(): void {
    this.#entries.push(...this.#survived);
    this.#survived = [];
  }

  /** `rank` failed, or will be said to have failed, after it had lost `other`. The first that is said of a rank counts. */
  suspect(rank: number, other: number): void {
    if (rank !== other && !this.#suspects.has(rank)) this.#suspects.set(rank, other);
  }

  departed(failure: RankMissingFailure): void {
    if (!this.#departed.has(failure.rank)) this.#departed.set(failure.rank, failure);
  }

  /** Chooses among what has been recorded so far; later failures never displace the choice. */
  decide(): Failure | null {
    if (this.#primary !== null) return this.#primary;
    this.#entries = this.#entries.map(({ failure, time }) => ({ failure: this.#complete(failure, time), time }));
    const first = this.#earliest();
    if (first === undefined) return null;
    const cause = this.#behind(first);
    if (cause.type === 'departed') this.record(cause.failure, first.time);
    this.#primary = cause.type === 'open' ? first.failure : this.#lackedBy(cause.failure);
    return this.#primary;
  }

  /** Whatever was chosen: this decides. */
  overrule(failure: Failure, time: number): void {
    if (!this.#entries.some((entry) => entry.failure === failure)) this.record(failure, time);
    this.#primary = failure;
  }

  #earliest(): Entry | undefined {
    return this.#entries.toSorted((one, other) => one.time - other.time || rankOf(one) - rankOf(other))[0];
  }

  /** From rank to lost rank, to the one that lost nobody. Where all say that they lost each other it is the earliest. */
  #behind(first: Entry): Cause {
    const passed = new Set<number>();
    for (let { failure } = first; ; ) {
      const rank = 'rank' in failure ? failure.rank : null;
      const lost = rank === null ? undefined : this.#suspects.get(rank);
      if (rank === null || lost === undefined) return { type: 'failed', failure };
      if (passed.has(rank)) return { type: 'failed', failure: first.failure };
      passed.add(rank);
      const next = this.#failureOf(lost) ?? this.#lostHost();
      if (next === undefined) {
        const departed = this.#departed.get(lost);
        return departed === undefined ? { type: 'open' } : { type: 'departed', failure: departed };
      }
      failure = next;
    }
  }

  /** Its own end tells more than that others lacked it. */
  #failureOf(rank: number): Failure | undefined {
    const own = this.#entries.map((entry) => entry.failure).filter((one) => 'rank' in one && one.rank === rank);
    return own.find(({ type }) => type !== 'rank-missing') ?? own[0];
  }

  #lostHost(): Failure | undefined {
    return this.#entries.map((entry) => entry.failure).find(({ type }) => type === 'host-lost');
  }

  /** A rank that others lacked precedes their ends, whatever the clocks of their hosts say. */
  #lackedBy(failure: Failure): Failure {
    if (failure.type !== 'rank-exit' && failure.type !== 'rank-signal') return failure;
    const missing = this.#entries.map((entry) => entry.failure).filter(({ type }) => type === 'rank-missing');
    if (missing.some((other) => 'rank' in other && other.rank === failure.rank)) return failure;
    return missing[0] ?? failure;
  }
}

type Cause =
  | { readonly type: 'failed'; readonly failure: Failure }
  | { readonly type: 'departed'; readonly failure: RankMissingFailure }
  /** The rank that was lost has not been heard of. */
  | { readonly type: 'open' };

/** What is no rank's failure comes before what is. */
function rankOf({ failure }: Entry): number {
  return 'rank' in failure ? failure.rank : -1;
}
