/** Which failures another attempt may mend, and how many attempts there are. */
import type { Failure } from './failure.ts';
import type { JobRequest } from './types.ts';

/** What ranks and hosts do, not what the user or the command line wants. */
const MENDED: ReadonlySet<Failure['type']> = new Set(['rank-exit', 'rank-signal', 'rank-missing', 'host-lost', 'hang']);

export class Restarts {
  readonly #most: number;
  #done = 0;
  #isOver = false;

  constructor({ maxRestarts }: Pick<JobRequest, 'maxRestarts'>) {
    this.#most = maxRestarts;
  }

  /** The attempts before the one under way. */
  get done(): number {
    return this.#done;
  }

  /** The user wants the job to end. */
  giveUp(): void {
    this.#isOver = true;
  }

  /** True: the job is started again, and this counts it. `failure`: what ended the attempt; null: nothing did. */
  another(failure: Failure | null): boolean {
    const mends = failure !== null && MENDED.has(failure.type);
    if (!mends || this.#isOver || this.#done >= this.#most) return false;
    this.#done += 1;
    return true;
  }
}
