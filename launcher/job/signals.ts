/**
 * The signals that ncclrun itself receives.
 *
 *   SIGINT    once: SIGINT to the ranks; twice: SIGTERM, after the grace SIGKILL; a third time: leave, the leases do the rest
 *   SIGTERM   SIGTERM to the ranks, after the grace SIGKILL; a third one: leave          SIGHUP likewise
 *   SIGTSTP   the ranks are stopped, leases suspended, then we stop; SIGCONT reverses it
 *   SIGUSR1, SIGUSR2 and what else --forward-signals names: passed on, the job goes on
 */
import { readFileSync } from 'node:fs';
import { constants } from 'node:os';
import type { Forwardable } from '../model/forwardable.ts';

export interface SignalActions {
  /** The ranks are asked to end; `signal` is what ended the job. */
  interrupt(): void;
  terminate(signal: Ending): void;
  leave(): void;
  forward(signal: Forwardable): void;
  /** A signal that is not to be passed on, and would end us or open a debugger. */
  ignore(signal: Forwardable): void;
  /** `ranks`: they are stopped too. */
  suspend(ranks: boolean): void;
  resume(ranks: boolean): void;
}

type Ending = 'SIGINT' | 'SIGTERM' | 'SIGHUP';
const endings: readonly Ending[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];
/** We listen to these whether they are passed on or not. */
const always: readonly Forwardable[] = ['SIGUSR1', 'SIGUSR2', 'SIGTSTP', 'SIGCONT'];

const MAX_ASKS = 3;
const INTERRUPTED_STATUS = 128 + constants.signals.SIGINT;

/** What bin/ncclrun says, because Node itself forgets which signals are ignored. No business of the ranks. */
function startedByNohup(): boolean {
  if (process.env['NCCLRUN_NOHUP'] === undefined) return false;
  delete process.env['NCCLRUN_NOHUP'];
  return true;
}

let interrupted = false;

/**
 * Where the user's ^C has ended a job with that status, ends this process by the signal: a shell that runs us in a loop sees that it is to
 * end, too. The first process of a container stays. salloc would take that end for success.
 */
export function dieOfInterrupt(status: number): void {
  if (!interrupted || status !== INTERRUPTED_STATUS || parentName() === 'salloc') return;
  process.removeAllListeners('SIGINT');
  process.kill(process.pid, 'SIGINT');
}

function parentName(): string | null {
  try {
    return readFileSync(`/proc/${process.ppid}/comm`, 'utf8').trim();
  } catch {
    return null;
  }
}

export class SignalPolicy {
  readonly #actions: SignalActions;
  readonly #forwarded: ReadonlySet<Forwardable>;
  readonly #listeners = new Map<NodeJS.Signals, () => void>();
  #asks = 0;
  #ranksSuspended = false;

  constructor(actions: SignalActions, forwarded: readonly Forwardable[]) {
    this.#actions = actions;
    this.#forwarded = new Set(forwarded);
  }

  install(): void {
    const ignoring = startedByNohup();
    for (const signal of endings) {
      this.#listen(signal, signal === 'SIGHUP' && ignoring ? () => {} : () => this.receive(signal));
    }
    for (const signal of new Set([...always, ...this.#forwarded])) this.#listen(signal, () => this.receive(signal));
  }

  remove(): void {
    for (const [signal, listener] of this.#listeners) process.off(signal, listener);
    this.#listeners.clear();
  }

  #listen(signal: NodeJS.Signals, listener: () => void): void {
    this.#listeners.set(signal, listener);
    process.on(signal, listener);
  }

  receive(signal: Forwardable | Ending): void {
    if (signal === 'SIGINT' || signal === 'SIGTERM' || signal === 'SIGHUP') return this.#ask(signal);
    const forwarded = this.#forwarded.has(signal);
    if (signal === 'SIGTSTP') {
      this.#ranksSuspended = forwarded;
      this.#actions.suspend(forwarded);
    } else if (signal === 'SIGCONT') {
      this.#actions.resume(forwarded || this.#ranksSuspended);
      this.#ranksSuspended = false;
    } else if (forwarded) {
      this.#actions.forward(signal);
    } else {
      this.#actions.ignore(signal);
    }
    return undefined;
  }

  #ask(signal: Ending): void {
    this.#asks += 1;
    interrupted ||= signal === 'SIGINT';
    if (this.#asks >= MAX_ASKS) this.#actions.leave();
    else if (signal === 'SIGINT' && this.#asks === 1) this.#actions.interrupt();
    else this.#actions.terminate(signal);
  }
}
