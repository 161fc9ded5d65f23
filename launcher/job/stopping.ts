/**
 * ^Z: this process stops once the hosts have. Whatever is still on its way inside us then would come only when we go on: leases would
 * not be suspended, ranks would run.
 */

/** A host that does not answer keeps nobody from the prompt. */
const PATIENCE_MS = 2000;

export class Stopping {
  readonly #stopHosts: (ranks: boolean) => Promise<void>;
  #stopNow: (() => void) | null = null;

  constructor(stopHosts: (ranks: boolean) => Promise<void>) {
    this.#stopHosts = stopHosts;
  }

  begin(ranks: boolean): void {
    if (this.#stopNow !== null) return;
    const stopNow = (): void => {
      clearTimeout(patience);
      if (this.#stopNow !== stopNow) return;
      this.#stopNow = null;
      process.kill(process.pid, 'SIGSTOP');
    };
    const patience = setTimeout(stopNow, PATIENCE_MS);
    this.#stopNow = stopNow;
    void this.#stopHosts(ranks).then(stopNow);
  }

  /** SIGCONT: who was about to stop does not. */
  end(): void {
    this.#stopNow = null;
  }
}
