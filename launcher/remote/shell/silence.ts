/**
 * How long a host may be silent on an ssh connection before it is given up: while its sshd and we get to know each other, and before its agent speaks.
 * From then on the lease on the link judges sooner.
 */
export const ALIVE_SECONDS = 2;
export const ALIVE_COUNT = 3;

/** Calls `silent` once, if nothing is `received` for that long. While this process is busy, what has arrived waits to be read: that time does not count. */
export class SilenceWatch {
  readonly #timer: NodeJS.Timeout;
  #ticks = 0;

  constructor(silent: () => void) {
    const tick = (): void => {
      this.#ticks += 1;
      if (this.#ticks === ALIVE_COUNT) silent();
    };
    // Between a timer and setImmediate the event loop reads.
    this.#timer = setInterval(() => setImmediate(tick), ALIVE_SECONDS * 1000);
  }

  received(): void {
    this.#ticks = 0;
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
