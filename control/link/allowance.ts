/** Rate limit of incoming messages: a burst, and a number per second in the long run. */
import { monotonicMs } from '../clock.ts';
import { ProtocolError } from '../messages/protocol-error.ts';

interface AllowanceOptions {
  /** Plural noun for the error message: `heartbeats`. */
  readonly what: string;
  readonly atOnce: number;
  readonly perSecond: number;
  /** For tests. */
  readonly now?: () => number;
}

/** Unused allowance accumulates, because a process that was stopped for an hour receives an hour's heartbeats at once. */
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

  /** Counts one message. @throws ProtocolError if it exceeds the allowance */
  use(): void {
    const { what, atOnce, perSecond } = this.#options;
    this.#came += 1;
    if (this.#came <= atOnce) return; // saves a call of the clock
    const seconds = (this.#now() - this.#since) / 1000;
    if (this.#came > atOnce + perSecond * seconds)
      throw new ProtocolError(
        `${this.#came} ${what} within ${seconds.toFixed(1)} s, where ${atOnce} are the most at once`,
      );
  }
}
