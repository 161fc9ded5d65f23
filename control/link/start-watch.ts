/**
 * Watches an agent that is being started, from the first process on this side to the agent's first word. What counts is progress: a slow host says every second
 * that it is at work (StagingWord.alive), a connection that is being made has limits of its own.
 *
 *     connecting ── we are in ──► login ── the host's first word ──► starting ── the agent's first word ──► (the link's lease)
 */
import { Lease } from './lease.ts';

/** How far a start has come. */
type StartPhase = 'connecting' | 'login' | 'starting';

/** Why a start was given up. */
export type StartStall =
  | { readonly type: 'silent'; readonly phase: StartPhase; readonly silentMs: number }
  /** A process on our side was stopped. */
  | { readonly type: 'stopped'; readonly pid: number; readonly stoppedMs: number };

export interface StartWatchOptions {
  readonly heartbeatMs: number;
  /** Silence of a host that has spoken, and a process on our side that is stopped for so long, are too much. */
  readonly leaseMs: number;
  /** From the beginning to the host's first word. */
  readonly connectMs: number;
  /** Once we are in, the host's login shell has so long to run our command; null: what is left of connectMs. */
  readonly loginMs: number | null;
  /** However often the host says that it is at work: nothing else may be so long in coming. */
  readonly advanceMs: number;
  /** The number of the process on our side if a signal has stopped it, else null. */
  readonly stoppedProcess: () => number | null;
  /** Called once. */
  readonly onStall: (stall: StartStall) => void;
}

export class StartWatch {
  readonly #options: StartWatchOptions;
  readonly #timer: NodeJS.Timeout;
  #phase: StartPhase = 'connecting';
  #lease: Lease | null = null;
  #advance: Lease | null = null;
  #stoppedTicks = 0;

  constructor(options: StartWatchOptions) {
    this.#options = options;
    this.#limit(options.connectMs);
    this.#timer = setInterval(() => this.#look(), options.heartbeatMs);
    this.#timer.unref();
  }

  /** We are in. */
  login(): void {
    const { loginMs } = this.#options;
    if (this.#phase !== 'connecting' || loginMs === null) return;
    this.#phase = 'login';
    this.#limit(loginMs);
  }

  /** The host has said something, which no agent has: `advances` where it is more than a sign of life. */
  received(advances: boolean): void {
    if (advances) this.#advance?.renew();
    if (this.#phase === 'starting') return this.#lease?.renew();
    this.#phase = 'starting';
    this.#limit(this.#options.leaseMs);
    this.#advance = this.#countTo(this.#options.advanceMs);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#lease?.stop();
    this.#advance?.stop();
  }

  #limit(leaseMs: number): void {
    this.#lease?.stop();
    this.#lease = this.#countTo(leaseMs);
  }

  #countTo(leaseMs: number): Lease {
    const onSilent = (silentMs: number): void => this.#stall({ type: 'silent', phase: this.#phase, silentMs });
    return new Lease({ heartbeatMs: this.#options.heartbeatMs, leaseMs, onSilent });
  }

  #look(): void {
    const pid = this.#options.stoppedProcess();
    this.#stoppedTicks = pid === null ? 0 : this.#stoppedTicks + 1;
    const stoppedMs = this.#stoppedTicks * this.#options.heartbeatMs;
    if (pid !== null && stoppedMs >= this.#options.leaseMs) this.#stall({ type: 'stopped', pid, stoppedMs });
  }

  #stall(stall: StartStall): void {
    this.stop();
    this.#options.onStall(stall);
  }
}

/** As a phrase, of the connection that is being made. */
export function describeStall(stall: StartStall): string {
  if (stall.type === 'stopped')
    return `the remote shell (process ${stall.pid}) was stopped for ${inSeconds(stall.stoppedMs)} and was ended`;
  const silent = inSeconds(stall.silentMs);
  switch (stall.phase) {
    case 'connecting':
      return `no agent answered within ${silent}`;
    case 'login':
      return `we are logged in, but the login shell has not run our command within ${silent}`;
    case 'starting':
      return `the host fell silent for ${silent} while its agent was started`;
    default:
      return stall.phase satisfies never;
  }
}

function inSeconds(milliseconds: number): string {
  return `${Math.round(milliseconds / 1000)} s`;
}
