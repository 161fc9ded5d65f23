/**
 * Which failure decides the job: the earliest that we did not cause ourselves; of equally early ones that of the lowest rank.
 * A rank that others lacked is the cause of their ends. Failures of one iteration of the event loop are judged together, because they were under way before we could react to any.
 *
 * News of two hosts overtake each other: a rank that failed because it lost another one may be reported first. Where its agent says so
 * (`suspect`), the verdict is open until it is known how the other one fared, or a timeout ends the wait. So it is where a rank is to blame
 * that aborted its communicator and has not ended: its end says with which status it failed, and whether it had lost somebody itself.
 *
 * Programs that are connected without our engine (MPI, Gloo) tell us nothing of whom they lost: they exit when a connection breaks, and the
 * kernel breaks the connections of a killed process before it reports its death. So a rank that crashed, or a host that was lost, precedes ranks
 * that exited, and after an exit there is a short wait for that.
 */
import { constants } from 'node:os';
import type { Failure, RankMissingFailure } from '../model/failure.ts';

interface Entry {
  readonly failure: Failure;
  /** Milliseconds since 1970, by the clock of its host. */
  readonly time: number;
  /** Others went on without who failed, so it was not they that it had lost. */
  readonly survived?: true;
}

interface Cause {
  readonly failure: Failure;
  /** Nothing is known of a rank that others lost; the failure is the answer if that stays so. */
  readonly open: boolean;
}

/** What an open verdict waits for: news of a rank that others lost, the end of the rank that is to blame so far, or a crash behind its exit. */
export type Awaited = 'news' | 'end' | 'crash';

/** How the other ranks fare. */
interface Others {
  /** A rank has ended, or its host has. */
  isRankOver(rank: number): boolean;
  /** Ranks that have not. */
  readonly left: number;
}

/** Signals that end a process whatever its peers do. SIGABRT and SIGPIPE are how many programs end that lost a peer. */
const CRASHES: ReadonlySet<string> = new Set(['SIGKILL', 'SIGSEGV', 'SIGBUS', 'SIGILL', 'SIGFPE', 'SIGSYS', 'SIGXCPU']);
/** The same signals as a shell passes them on. */
const CRASH_STATUSES: ReadonlySet<number> = new Set(
  Object.entries(constants.signals).flatMap(([name, number]) => (CRASHES.has(name) ? [128 + number] : [])),
);

export class FailurePolicy {
  #entries: Entry[] = [];
  /** Failures that the other ranks went on without. */
  #survived: Entry[] = [];
  readonly #complete: (failure: Failure, time: number) => Failure;
  /** Rank → the rank it had lost when it failed. */
  readonly #suspects = new Map<number, number>();
  /** Ranks that left others behind: the failure that counts if those fail. */
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

  /** What may change the choice before it is made; null: nothing. */
  awaits(others: Others): Awaited | null {
    if (this.#primary !== null || this.#entries.some(({ failure }) => !('host' in failure))) return null;
    const first = this.#inOrder[0];
    if (first === undefined) return null;
    const { failure, open } = this.#causeOf(first);
    if (open) return 'news';
    if (failure.type === 'rank-missing') return others.isRankOver(failure.rank) ? null : 'end';
    return others.left > 0 && !first.survived && this.#mayFollowCrash(failure) ? 'crash' : null;
  }

  record(failure: Failure, time: number): void {
    this.#entries.push({ failure, time });
  }

  /** The other ranks go on without who failed. */
  survive(failure: Failure, time: number): Failure {
    const completed = this.#complete(failure, time);
    this.#survived.push({ failure: completed, time, survived: true });
    return completed;
  }

  /** A failure says that others lacked `rank`, or a rank that failed had lost it. */
  blames(rank: number): boolean {
    return [...this.#survived, ...this.#entries].some(
      ({ failure }) =>
        'rank' in failure &&
        (failure.type === 'rank-missing' ? failure.rank === rank : this.#suspects.get(failure.rank) === rank),
    );
  }

  /** No rank survived: what was survived until now counts like any other failure. False if there was nothing. */
  recall(): boolean {
    const { length } = this.#survived;
    this.#entries.push(...this.#survived);
    this.#survived = [];
    return length > 0;
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
    this.#entries = this.#entries.map((entry) => ({ ...entry, failure: this.#complete(entry.failure, entry.time) }));
    const first = this.#inOrder[0];
    if (first === undefined) return null;
    const { failure } = this.#causeOf(first);
    if (!this.#has(failure)) this.record(failure, first.time); // a departed rank has none of its own
    this.#primary = failure;
    return failure;
  }

  /** Whatever was chosen: this decides. */
  overrule(failure: Failure, time: number): void {
    if (!this.#has(failure)) this.record(failure, time);
    this.#primary = failure;
  }

  #has(failure: Failure): boolean {
    return this.#entries.some((entry) => entry.failure === failure);
  }

  get #inOrder(): readonly Entry[] {
    return this.#entries.toSorted((one, other) => one.time - other.time || rankOf(one) - rankOf(other));
  }

  #causeOf({ failure, survived }: Entry): Cause {
    const cause = this.#behind(failure);
    if (cause.open) return cause;
    const crash = survived ? undefined : this.#crashBefore(cause.failure);
    const other = this.#lackedBy(cause.failure) ?? crash;
    return other === undefined ? cause : this.#behind(other);
  }

  /** From rank to lost rank, to the one that lost nobody. Where all say that they lost each other it is where we began. */
  #behind(first: Failure): Cause {
    const passed = new Set<number>();
    for (let failure = first; ; ) {
      const rank = 'rank' in failure ? failure.rank : null;
      const lost = rank === null ? undefined : this.#suspects.get(rank);
      if (rank === null || lost === undefined) return { failure, open: false };
      if (passed.has(rank)) return { failure: first, open: false };
      passed.add(rank);
      const next = this.#failureOf(lost) ?? this.#lostHost() ?? this.#departed.get(lost);
      if (next === undefined) return { failure: first, open: true };
      failure = next;
    }
  }

  /** Prefers a rank's own exit over "peers were missing it". */
  #failureOf(rank: number): Failure | undefined {
    const own = this.#entries.map((entry) => entry.failure).filter((one) => 'rank' in one && one.rank === rank);
    return own.find(({ type }) => type !== 'rank-missing') ?? own[0];
  }

  #lostHost(): Failure | undefined {
    return this.#entries.map((entry) => entry.failure).find(({ type }) => type === 'host-lost');
  }

  /** What the exit of a rank may have come of. */
  #crashBefore(failure: Failure): Failure | undefined {
    return this.#mayFollowCrash(failure) ? this.#inOrder.find((entry) => isCrash(entry.failure))?.failure : undefined;
  }

  /** The rank ended itself, and nothing is known of whom it had lost, nor did others lose it. */
  #mayFollowCrash(failure: Failure): boolean {
    if (failure.type !== 'rank-exit' || isCrash(failure)) return false;
    return !this.#suspects.has(failure.rank) && ![...this.#suspects.values()].includes(failure.rank);
  }

  /** A rank that others lacked precedes their ends, whatever the clocks of their hosts say. Undefined: there is none but itself. */
  #lackedBy(failure: Failure): RankMissingFailure | undefined {
    if (failure.type !== 'rank-exit' && failure.type !== 'rank-signal') return undefined;
    const missing = this.#entries.flatMap((entry) => (entry.failure.type === 'rank-missing' ? [entry.failure] : []));
    return missing.some(({ rank }) => rank === failure.rank) ? undefined : missing[0];
  }
}

function isCrash(failure: Failure): boolean {
  if (failure.type === 'host-lost') return true;
  if (failure.type === 'rank-signal') return CRASHES.has(failure.signal);
  return failure.type === 'rank-exit' && (failure.outOfMemory || CRASH_STATUSES.has(failure.exitCode));
}

/** Failures that are not tied to a rank sort first. */
function rankOf({ failure }: Entry): number {
  return 'rank' in failure ? failure.rank : -1;
}
