/**
 * Heartbeats, and the lease of the other side. Any frame renews the lease. Each process keeps leases with its neighbours in the agent tree:
 * the launcher with the agents that it starts itself, an agent with its child agents. Only the launcher's own heartbeats travel down, and every
 * agent forwards them. An agent without heartbeats thus knows that the launcher, or the path to it, is gone at any depth of the tree.
 *
 * The lease counts only ticks of our clock that came on time: while our event loop was blocked, or this process was stopped, we could receive
 * nothing, so such ticks do not count against the other side.
 */
import { monotonicMs } from '../clock.ts';
import { encodeJson, makeFrame } from '../messages/codec.ts';
import { FrameKind, type Frame } from '../messages/frame.ts';
import type { AgentReport } from '../messages/link.ts';

/** A frame that only renews the lease. */
export const HEARTBEAT = makeFrame(FrameKind.heartbeat);

/** Frame that reports an expired lease to the launcher in place of the silent host. */
export function silenceFrame(silentMs: number): Frame {
  return makeFrame(FrameKind.failure, { payload: encodeJson({ type: 'silent', silentMs } satisfies AgentReport) });
}

interface LeaseOptions {
  readonly heartbeatMs: number;
  /** Silence of the other side after which the lease expires. */
  readonly leaseMs: number;
  readonly sendHeartbeat?: () => void;
  readonly onSilent: (silentMs: number) => void;
  /** For tests. */
  readonly now?: () => number;
}

export class Lease {
  readonly #options: LeaseOptions;
  readonly #now: () => number;
  readonly #timer: NodeJS.Timeout;
  #renewedAt: number;
  #tickAt: number;
  #silentTicks = 0;
  #suspended = false;

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.#now = options.now ?? monotonicMs;
    this.#renewedAt = this.#now();
    this.#tickAt = this.#renewedAt;
    this.#timer = setInterval(() => this.tick(), options.heartbeatMs);
    this.#timer.unref();
  }

  renew(): void {
    this.#silentTicks = 0;
    this.#renewedAt = this.#now();
  }

  /** Suspends expiry while the job is suspended; heartbeats continue. */
  suspend(): void {
    this.#suspended = true;
  }

  resume(): void {
    this.#suspended = false;
    this.renew();
  }

  /** Suspends or resumes as a frame of kind `suspend` asks. */
  follow({ flags }: Frame): void {
    if (flags === 1) this.suspend();
    else this.resume();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** One tick of the timer; public for tests. */
  tick(): void {
    const now = this.#now();
    const late = now - this.#tickAt > this.#options.heartbeatMs * 1.5;
    this.#tickAt = now;
    this.#options.sendHeartbeat?.();
    if (late || this.#suspended) return;
    this.#silentTicks += 1;
    if (this.#silentTicks * this.#options.heartbeatMs <= this.#options.leaseMs) return;
    this.stop();
    this.#options.onSilent(Math.round(now - this.#renewedAt));
  }
}
