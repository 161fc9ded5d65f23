/**
 * When the failure policy is asked which failure decides the job.
 *
 *   quiet ── a failure ──► due, at the end of this turn ── it decides ──► quiet
 *                            ▲          │ it is open
 *               news ────────┴── open ◄─┘
 *                                 └── patience is at its end: it decides ──► quiet
 */
import type { Clock, Countdown } from '../../control/clock.ts';
import type { FailurePolicy } from './failure-policy.ts';
import { HEARTBEAT_MS, LEASE_MS } from './order.ts';

/** An open verdict waits this long for news of the rank that a failed one had lost: by then every silent host has been found out. */
const PATIENCE_MS = LEASE_MS + 2 * HEARTBEAT_MS;

type State =
  | { readonly name: 'quiet' }
  /** All that is under way in this turn of the event loop is judged together. */
  | { readonly name: 'due'; readonly patience: Countdown | null }
  | { readonly name: 'open'; readonly patience: Countdown };

export interface VerdictHandler {
  /** The policy is to decide now. */
  decide(): void;
  /** Nothing is due any more; the verdict may be open. */
  looked(): void;
}

export class Verdict {
  readonly #policy: FailurePolicy;
  readonly #clock: Clock;
  readonly #handler: VerdictHandler;
  #state: State = { name: 'quiet' };

  constructor(policy: FailurePolicy, clock: Clock, handler: VerdictHandler) {
    this.#policy = policy;
    this.#clock = clock;
    this.#handler = handler;
  }

  get isDue(): boolean {
    return this.#state.name === 'due';
  }

  get isOpen(): boolean {
    return this.#state.name === 'open';
  }

  /** There is a failure, or what may decide an open verdict. */
  judge(): void {
    if (this.#state.name === 'due') return;
    this.#state = { name: 'due', patience: this.#state.name === 'open' ? this.#state.patience : null };
    setImmediate(() => this.#look());
  }

  /** Waits for no news any more. */
  end(): void {
    if (this.#state.name === 'quiet') return;
    this.#state.patience?.cancel();
    this.#state = this.#state.name === 'due' ? { name: 'due', patience: null } : { name: 'quiet' };
  }

  #look(): void {
    const patience = this.#state.name === 'due' ? this.#state.patience : null;
    if (this.#policy.open) {
      this.#state = {
        name: 'open',
        patience: patience ?? this.#clock.after(PATIENCE_MS, () => this.#handler.decide()),
      };
    } else {
      patience?.cancel();
      this.#state = { name: 'quiet' };
      this.#handler.decide();
    }
    this.#handler.looked();
  }
}
