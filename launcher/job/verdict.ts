/**
 * When the failure policy is asked which failure decides the job.
 *
 *   quiet ── a failure ──► due, at the end of this tick ── it decides ──► quiet
 *                            ▲          │ it is open
 *               news ────────┴── open ◄─┘
 *                                 └── timeout: it decides ──► quiet
 */
import type { Clock, Countdown } from '../../control/clock.ts';
import type { Awaited } from './failure-policy.ts';
import { HEARTBEAT_MS, LEASE_MS } from './order.ts';

/** From the first failure on: by then every silent host has been found out. */
const TIMEOUT_MS = LEASE_MS + 2 * HEARTBEAT_MS;

/** For each at most; a rank that is to blame and has not ended may well live on, and an exit is mostly nobody else's fault. */
const LONGEST_MS: Readonly<Record<Awaited, number>> = { news: TIMEOUT_MS, end: 300, crash: 100 };

interface Waiting {
  readonly for: Awaited;
  /** By the clock: when the verdict was first open. */
  readonly since: number;
  readonly timeout: Countdown;
}

type State =
  | { readonly name: 'quiet' }
  /** All that is under way in this iteration of the event loop is judged together. `waiting`: it was open before. */
  | { readonly name: 'due'; readonly waiting: Waiting | null }
  | { readonly name: 'open'; readonly waiting: Waiting };

interface VerdictHandler {
  /** What the policy waits for; null: it can decide. */
  awaits(): Awaited | null;
  /** The policy is to decide now. */
  decide(): void;
  /** Nothing is due any more; the verdict may be open. */
  judged(): void;
}

export class Verdict {
  readonly #clock: Clock;
  readonly #handler: VerdictHandler;
  #state: State = { name: 'quiet' };

  constructor(clock: Clock, handler: VerdictHandler) {
    this.#clock = clock;
    this.#handler = handler;
  }

  get isDue(): boolean {
    return this.#state.name === 'due';
  }

  get isOpen(): boolean {
    return this.#state.name === 'open';
  }

  /** There is a failure. */
  judge(): void {
    if (this.#state.name === 'due') return;
    this.#state = { name: 'due', waiting: this.#state.name === 'open' ? this.#state.waiting : null };
    setImmediate(() => this.#askPolicy());
  }

  /** There is what may decide an open verdict. */
  reconsider(): void {
    if (this.isOpen) this.judge();
  }

  /** Waits for no news any more. */
  end(): void {
    if (this.#state.name === 'quiet') return;
    this.#state.waiting?.timeout.cancel();
    this.#state = this.#state.name === 'due' ? { name: 'due', waiting: null } : { name: 'quiet' };
  }

  #askPolicy(): void {
    const waiting = this.#state.name === 'due' ? this.#state.waiting : null;
    const awaited = this.#handler.awaits();
    if (awaited !== null) {
      this.#state = { name: 'open', waiting: waiting?.for === awaited ? waiting : this.#wait(awaited, waiting) };
    } else {
      waiting?.timeout.cancel();
      this.#state = { name: 'quiet' };
      this.#handler.decide();
    }
    this.#handler.judged();
  }

  /** `before`: what was waited for until now. */
  #wait(awaited: Awaited, before: Waiting | null): Waiting {
    before?.timeout.cancel();
    const now = this.#clock.now();
    const since = before?.since ?? now;
    const longest = Math.min(LONGEST_MS[awaited], since + TIMEOUT_MS - now);
    return { for: awaited, since, timeout: this.#clock.after(longest, () => this.#handler.decide()) };
  }
}
