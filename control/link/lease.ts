/**
 * Heartbeats and the judgement of the other side's silence. Any frame is a sign of life. A lease is kept with the next process on the way: the
 * launcher's with the agents that it reaches itself, an agent's with those that it reaches for the launcher. Only the launcher's own heartbeats
 * travel down, passed on by each agent as they come: who hears none knows that the launcher is gone, or the way to it, however far away it is.
 *
 * Silence is counted in ticks of our own clock that came on time: while our event loop was blocked, or this process was stopped,
 * nobody could have been heard, so such ticks do not count against the other side.
 */
import { monotonicMs } from '../clock.ts';
import { encodeJson, makeFrame } from '../messages/codec.ts';
import { FrameKind, type Frame } from '../messages/frame.ts';
import type { AgentReport } from '../messages/link.ts';

/** A sign of life and nothing else. */
export const HEARTBEAT = makeFrame(FrameKind.heartbeat);

/** What the launcher hears instead of a host that was silent for too long. */
export function silenceFrame(silentMs: number): Frame {
  return makeFrame(FrameKind.failure, { payload: encodeJson({ type: 'silent', silentMs } satisfies AgentReport) });
}

interface LeaseOptions {
  readonly heartbeatMs: number;
  /** Silence of the other side longer than this is its end. */
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

  /** No judgement while the job is stopped; heartbeats go on as long as this process does. */
  suspend(): void {
    this.#suspended = true;
  }

  resume(): void {
    this.#suspended = false;
    this.renew();
  }

  /** Does what a frame of kind `suspend` asks for. */
  follow({ flags }: Frame): void {
    if (flags === 1) this.suspend();
    else this.resume();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** The timer's work; tests call it themselves. */
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
