/** Reports keys that wait for long, with one timer for all of them. */
import type { Clock, Countdown } from '../clock.ts';
import type { PendingGather } from './collector.ts';

export interface LateReport {
  readonly what: string;
  /** Names of the missing ranks: "rank 3 (node1)". */
  readonly missing: readonly string[];
  /** Their ranks in the job, where known. */
  readonly ranks: readonly number[];
  readonly seconds: number;
}

/** Factor between the delay of the first report and the interval of the following ones. */
const REPEAT_AFTER = 6;

export class LateWatch {
  readonly #clock: Clock;
  readonly #afterMs: number;
  readonly #waiting: () => readonly PendingGather[];
  readonly #report: (gather: PendingGather, seconds: number) => void;
  readonly #reports = new WeakMap<PendingGather, number>();
  #timer: Countdown | null = null;

  constructor(
    clock: Clock,
    afterMs: number,
    waiting: () => readonly PendingGather[],
    report: (gather: PendingGather, seconds: number) => void,
  ) {
    this.#clock = clock;
    this.#afterMs = afterMs;
    this.#waiting = waiting;
    this.#report = report;
  }

  /** Starts the timer if a key waits. */
  watch(): void {
    if (this.#timer !== null) return;
    const next = Math.min(...this.#waiting().map((gather) => this.#dueAt(gather)));
    if (next === Infinity) return;
    this.#timer = this.#clock.after(Math.max(next - this.#clock.now(), 1), () => this.#fire());
  }

  close(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }

  #fire(): void {
    this.#timer = null;
    const now = this.#clock.now();
    for (const gather of this.#waiting()) {
      if (this.#dueAt(gather) > now) continue;
      this.#reports.set(gather, (this.#reports.get(gather) ?? 0) + 1);
      this.#report(gather, Math.round((now - gather.since) / 1000));
    }
    this.watch();
  }

  #dueAt(gather: PendingGather): number {
    return gather.since + this.#afterMs * (1 + REPEAT_AFTER * (this.#reports.get(gather) ?? 0));
  }
}
