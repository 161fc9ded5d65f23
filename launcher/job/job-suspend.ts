/**
 * ^Z: this process stops once the hosts have suspended their ranks. If it stopped earlier, frames under way inside it would go out only after
 * CONT: leases would not be suspended, ranks would run.
 */

/** A host that does not answer delays the prompt for this long at most. */
const TIMEOUT_MS = 2000;

export class JobSuspend {
  readonly #suspendHosts: (ranks: boolean) => Promise<void>;
  #stopNow: (() => void) | null = null;

  constructor(suspendHosts: (ranks: boolean) => Promise<void>) {
    this.#suspendHosts = suspendHosts;
  }

  begin(ranks: boolean): void {
    if (this.#stopNow !== null) return;
    const stopNow = (): void => {
      clearTimeout(timeout);
      if (this.#stopNow !== stopNow) return;
      this.#stopNow = null;
      process.kill(process.pid, 'SIGSTOP');
    };
    const timeout = setTimeout(stopNow, TIMEOUT_MS);
    this.#stopNow = stopNow;
    void this.#suspendHosts(ranks).then(stopNow);
  }

  /** SIGCONT: a process that was about to stop does not. */
  end(): void {
    this.#stopNow = null;
  }
}
