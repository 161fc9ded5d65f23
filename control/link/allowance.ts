/** How often something may come: so many at once, and so many per second in the long run. */
import { monotonicMs } from '../clock.ts';
import { ProtocolError } from '../messages/protocol-error.ts';

interface AllowanceOptions {
  /** What comes, in the plural, for the sentence: `heartbeats`. */
  readonly what: string;
  readonly atOnce: number;
  readonly perSecond: number;
  /** For tests. */
  readonly now?: () => number;
}

/** What was not used is kept for later: whoever was stopped for an hour finds an hour's heartbeats waiting. */
export class Allowance {
  readonly #options: AllowanceOptions;
  readonly #now: () => number;
  readonly #since: number;
  #came = 0;

  constructor(options: AllowanceOptions) {
    this.#options = options;
    this.#now = options.now ?? monotonicMs;
    this.#since = this.#now();
  }

  /** One more. @throws ProtocolError where that is too many */
  use(): void {
    const { what, atOnce, perSecond } = this.#options;
    this.#came += 1;
    if (this.#came <= atOnce) return; // without asking for the time
    const seconds = (this.#now() - this.#since) / 1000;
    if (this.#came > atOnce + perSecond * seconds)
      throw new ProtocolError(
        `${this.#came} ${what} within ${seconds.toFixed(1)} s, where ${atOnce} are the most at once`,
      );
  }
}
