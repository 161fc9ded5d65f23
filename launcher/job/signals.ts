/**
 * The signals that ncclrun itself receives.
 *
 *   SIGINT    once: SIGINT to the ranks; twice: SIGTERM, after the grace SIGKILL; a third time: leave, the leases do the rest
 *   SIGTERM   SIGTERM to the ranks, after the grace SIGKILL; a third one: leave          SIGHUP likewise
 *   SIGUSR1, SIGUSR2   passed on, the job goes on
 *   SIGTSTP   the ranks are stopped, leases suspended, then we stop; SIGCONT reverses it
 */
export interface SignalActions {
  /** The ranks are asked to end; `signal` is what ended the job. */
  interrupt(): void;
  terminate(signal: 'SIGINT' | 'SIGTERM' | 'SIGHUP'): void;
  leave(): void;
  forward(signal: NodeJS.Signals): void;
  stop(): void;
  resume(): void;
}

const handled = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2', 'SIGTSTP', 'SIGCONT'] as const;
type Handled = (typeof handled)[number];

const MAX_ASKS = 3;

export class SignalPolicy {
  readonly #actions: SignalActions;
  readonly #listeners = new Map<Handled, () => void>();
  #asks = 0;

  constructor(actions: SignalActions) {
    this.#actions = actions;
  }

  install(): void {
    for (const signal of handled) {
      const listener = (): void => this.receive(signal);
      this.#listeners.set(signal, listener);
      process.on(signal, listener);
    }
  }

  remove(): void {
    for (const [signal, listener] of this.#listeners) process.off(signal, listener);
    this.#listeners.clear();
  }

  receive(signal: Handled): void {
    switch (signal) {
      case 'SIGINT':
      case 'SIGTERM':
      case 'SIGHUP':
        return this.#ask(signal);
      case 'SIGUSR1':
      case 'SIGUSR2':
        return this.#actions.forward(signal);
      case 'SIGTSTP':
        return this.#actions.stop();
      case 'SIGCONT':
        return this.#actions.resume();
      default:
        return signal satisfies never;
    }
  }

  #ask(signal: 'SIGINT' | 'SIGTERM' | 'SIGHUP'): void {
    this.#asks += 1;
    if (this.#asks >= MAX_ASKS) this.#actions.leave();
    else if (signal === 'SIGINT' && this.#asks === 1) this.#actions.interrupt();
    else this.#actions.terminate(signal);
  }
}
