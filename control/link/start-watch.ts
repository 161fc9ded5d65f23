/**
 * Watches the start of an agent, from the first local process to the agent's first frame. Progress counts: a slow host sends
 * StagingMessage.alive every second, and a connection attempt has timeouts of its own.
 *
 *     connecting ── authenticated ──► login ── the host's first frame ──► starting ── the agent's first frame ──► (the link's lease)
 */
import { Lease } from './lease.ts';

/** Phase of a start. */
type StartPhase = 'connecting' | 'login' | 'starting';

/** Reason to give up a start. */
export type StartStall =
  | { readonly type: 'silent'; readonly phase: StartPhase; readonly silentMs: number }
  /** A signal stopped a local process. */
  | { readonly type: 'stopped'; readonly pid: number; readonly stoppedMs: number };

export interface StartWatchOptions {
  readonly heartbeatMs: number;
  /** Limit for the silence of a host after its first frame, and for a local process that a signal has stopped. */
  readonly leaseMs: number;
  /** Limit from the beginning to the host's first frame. */
  readonly connectMs: number;
  /** Limit from authentication until the login shell runs our command; null for the rest of connectMs. */
  readonly loginMs: number | null;
  /** Limit without progress, however often the host sends `alive`. */
  readonly advanceMs: number;
  /** PID of the local process if a signal has stopped it, else null. */
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

  /** The host has authenticated us. */
  login(): void {
    const { loginMs } = this.#options;
    if (this.#phase !== 'connecting' || loginMs === null) return;
    this.#phase = 'login';
    this.#limit(loginMs);
  }

  /** The host's script has sent a frame; `advances` is true if it shows progress. */
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

/** Describes the stall as a phrase about the connection attempt. */
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
