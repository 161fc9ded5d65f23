/**
 * What went wrong in one attempt: records failures with the policy, asks it for a verdict, and announces the primary failure with those beside
 * it. verdict.ts has the states of that.
 */
import type { Clock } from '../../control/clock.ts';
import type { Failure, InitTimeoutFailure, RankMissingFailure } from '../model/failure.ts';
import type { FailurePolicy } from './failure-policy.ts';
import type { JobState, UntimedEvent } from './job-parts.ts';
import { endedWell } from './rank.ts';
import type { RankEnds } from './rank-ends.ts';
import type { RankTable } from './rank-table.ts';
import { Verdict } from './verdict.ts';

interface JobFailuresOptions {
  readonly policy: FailurePolicy;
  readonly clock: Clock;
  /** The other ranks go on where ranks or hosts fail. */
  readonly shrinks: boolean;
  readonly ends: RankEnds;
  readonly ranks: () => RankTable;
  readonly state: () => JobState;
  readonly emit: (event: UntimedEvent) => void;
  /** The first failure, before it is judged. */
  recorded(failure: Failure): void;
  /** The primary failure is announced: the ranks are to end. */
  decided(): void;
  /** No judgement is due any more; the verdict may be open. */
  judged(): void;
}

export class JobFailures {
  readonly #options: JobFailuresOptions;
  readonly #policy: FailurePolicy;
  readonly #verdict: Verdict;
  /** With `shrinks`: ranks that others lacked and whose end was not reported yet, and what was said of them. */
  readonly #lacked = new Map<number, string>();

  constructor(options: JobFailuresOptions) {
    this.#options = options;
    this.#policy = options.policy;
    this.#verdict = new Verdict(options.clock, {
      awaits: () => this.#policy.awaits(options.ranks()),
      decide: () => this.#decide(),
      judged: () => options.judged(),
    });
  }

  get any(): boolean {
    return this.#policy.any;
  }

  /** Failures of this iteration of the event loop are still to be judged. */
  get isDue(): boolean {
    return this.#verdict.isDue;
  }

  /** What went wrong; the first one ends the job. */
  fail(failure: Failure, time = Date.now()): void {
    const isOfRanks = failure.type === 'rank-missing' || failure.type === 'init-timeout';
    if (isOfRanks && this.#options.state().name === 'stopping') return; // it is we who ended them
    if (!this.#policy.any) this.#options.recorded(failure);
    this.#policy.record(failure, time);
    if (this.#policy.primary !== null) {
      this.#options.emit({ type: 'failure', failure, primary: false });
      return;
    }
    this.#verdict.judge();
  }

  /** The attempt is over, and this is why there is no other. */
  overrule(failure: Failure): void {
    this.#policy.overrule(failure, Date.now());
    this.#options.emit({ type: 'failure', failure, primary: true });
  }

  /**
   * A rank or host failed: the end of the job, unless other ranks go on without it or have ended well. Hosts report in any order, so this
   * failure may be the last report and yet precede the good end of a survivor.
   */
  ranksFailed(failure: Failure, time = Date.now()): void {
    const { ranks, emit } = this.#options;
    if (!this.#isSurvivable) return this.fail(failure, time);
    const survived = this.#policy.survive(failure, time);
    const { left } = ranks();
    if (this.#endsWithoutSurvivor()) return this.#recall();
    return emit({ type: 'shrink', failure: survived, left });
  }

  /** A rank ended without a failure of its own, which matters where others lacked it. */
  endedWell(rank: number): void {
    const message = this.#lacked.get(rank);
    if (message !== undefined) this.ranksFailed(this.#missing(rank, message));
    else if (this.#isSurvivable && this.#endsWithoutSurvivor()) this.#recall();
  }

  /** `rank`, whose end comes next, had lost `other` when it failed. */
  suspect(rank: number, other: number): void {
    this.#policy.suspect(rank, other);
  }

  /** A rank that others need will not come. */
  missing(rank: number, message: string): void {
    const state = this.#options.ranks().states[rank];
    if (!this.#options.shrinks || (state !== undefined && endedWell(state)))
      return this.ranksFailed(this.#missing(rank, message));
    this.#lacked.set(rank, message); // its own failure, or its host's, is reported if it does not end well
    return undefined;
  }

  /** A rank left others behind; it is a failure if those fail because of it. */
  departed(rank: number, message: string): void {
    this.#policy.departed(this.#missing(rank, message));
    this.reconsider();
  }

  /** Ranks did not join their communicator in time. `ranks`: those of them that are known. */
  joinedTooLate(late: Pick<InitTimeoutFailure, 'seconds' | 'what' | 'missing'>, ranks: readonly number[]): void {
    const words = ranks.map((rank) => ({ rank, tail: this.#options.ends.lastWords(rank) }));
    this.fail({ type: 'init-timeout', ...late, stderr: words.find(({ tail }) => tail.length > 0) ?? null });
  }

  /** The user's signal decides, unless there was a failure before. */
  interrupted(signal: 'SIGINT' | 'SIGTERM' | 'SIGHUP'): void {
    if (!this.#policy.any) {
      this.#policy.record({ type: 'interrupt', signal }, Date.now());
      this.#announce();
    }
    this.announceOpen();
  }

  /** There are news that may decide an open verdict. */
  reconsider(): void {
    this.#verdict.reconsider();
  }

  /** No news can come any more: an open verdict is decided by what is known. */
  announceOpen(): void {
    if (this.#verdict.isOpen) this.#announce();
  }

  close(): void {
    this.#verdict.end();
  }

  /** Other ranks run, or ran, without who failed. */
  get #isSurvivable(): boolean {
    const { name } = this.#options.state();
    return this.#options.shrinks && (name === 'spawning' || name === 'running' || (name === 'teardown' && !this.any));
  }

  /** No rank runs, and none has ended well that the others did not lack. */
  #endsWithoutSurvivor(): boolean {
    const { left, states } = this.#options.ranks();
    return left === 0 && !states.some((state, rank) => endedWell(state) && !this.#policy.blames(rank));
  }

  /** What was survived until now decides the job. */
  #recall(): void {
    if (this.#policy.recall()) this.#verdict.judge();
  }

  #decide(): void {
    if (this.#policy.primary !== null) return;
    this.#announce();
    this.#options.decided();
  }

  /** Chooses the primary failure and announces it and those beside it. */
  #announce(): void {
    this.#verdict.end();
    const primary = this.#policy.decide();
    for (const failure of this.#policy.failures) {
      this.#options.emit({ type: 'failure', failure, primary: failure === primary });
    }
  }

  #missing(rank: number, message: string): RankMissingFailure {
    const { ranks, ends } = this.#options;
    const host = ranks().hostNameOf(rank);
    return { type: 'rank-missing', host, rank, message, stderrTail: ends.lastWords(rank) };
  }
}
