/** Notices keys that wait long, with one timer for all of them. */
import type { Gathering } from './collector.ts';

export interface LateReport {
  readonly what: string;
  /** "rank 3 (node1)" each. */
  readonly missing: readonly string[];
  readonly seconds: number;
}

/** A key is reported after `afterMs`, then again after each six times that. */
const REPEAT_AFTER = 6;

export class LateWatch {
  readonly #afterMs: number;
  readonly #waiting: () => readonly Gathering[];
  readonly #report: (gathering: Gathering, seconds: number) => void;
  readonly #reports = new WeakMap<Gathering, number>();
  #timer: NodeJS.Timeout | null = null;

  constructor(
    afterMs: number,
    waiting: () => readonly Gathering[],
    report: (gathering: Gathering, seconds: number) => void,
  ) {
    this.#afterMs = afterMs;
    this.#waiting = waiting;
    this.#report = report;
  }

  /** Something waits. */
  watch(): void {
    if (this.#timer !== null) return;
    const next = Math.min(...this.#waiting().map((gathering) => this.#dueAt(gathering)));
    if (next === Infinity) return;
    this.#timer = setTimeout(() => this.#fire(), Math.max(next - Date.now(), 1)).unref();
  }

  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #fire(): void {
    this.#timer = null;
    const now = Date.now();
    for (const gathering of this.#waiting()) {
      if (this.#dueAt(gathering) > now) continue;
      this.#reports.set(gathering, (this.#reports.get(gathering) ?? 0) + 1);
      this.#report(gathering, Math.round((now - gathering.since) / 1000));
    }
    this.watch();
  }

  #dueAt(gathering: Gathering): number {
    return gathering.since + this.#afterMs * (1 + REPEAT_AFTER * (this.#reports.get(gathering) ?? 0));
  }
}
