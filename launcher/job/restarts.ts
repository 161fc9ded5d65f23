/** Which failures another attempt may mend, and how many attempts there are. */
import type { Failure } from '../model/failure.ts';
import type { JobRequest } from '../model/types.ts';

/** What ranks and hosts do, not what the user or the command line wants. */
const MENDED: ReadonlySet<Failure['type']> = new Set([
  'rank-exit',
  'rank-signal',
  'rank-missing',
  'mpi-abort',
  'host-lost',
  'hang',
]);

export class Restarts {
  readonly #maxRestarts: number;
  #done = 0;
  #isOver = false;
  #reason: Failure | null = null;

  constructor({ maxRestarts }: Pick<JobRequest, 'maxRestarts'>) {
    this.#maxRestarts = maxRestarts;
  }

  /** The attempts before the one under way. */
  get done(): number {
    return this.#done;
  }

  /** The attempts that may follow the one under way. */
  get left(): number {
    return this.#isOver ? 0 : this.#maxRestarts - this.#done;
  }

  /** The user wants the job to end, or its time has run out: the failure that says so. */
  giveUp(reason: Failure | null = null): void {
    this.#isOver = true;
    this.#reason = reason;
  }

  /** What the job ended for where `failure` would have been mended; null: `failure` itself. */
  insteadOf(failure: Failure): Failure | null {
    return MENDED.has(failure.type) && this.#done < this.#maxRestarts ? this.#reason : null;
  }

  /** True: the job is started again, and this counts it. `replaced`: it goes without the host that failed. */
  another(failure: Failure, replaced: boolean): boolean {
    if (this.left === 0 || !(MENDED.has(failure.type) || replaced)) return false;
    this.#done += 1;
    return true;
  }
}
