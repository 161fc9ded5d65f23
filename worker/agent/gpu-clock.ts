/**
 * How the clock of a GPU relates to its host's CLOCK_MONOTONIC: two readings that the engine left in the flight recorder
 * (native/include/ncclrun.h, ncclrunRecorderClock). Between them and behind them both clocks run evenly.
 */
import { RECORDER_ENTRIES, RECORDER_GPUS } from '../../control/messages/recorder.ts';
import { readU64 } from '../../control/plan/u64.ts';

export const CLOCK_BYTES = 64;
export const CLOCK = {
  sequence: 0,
  firstNs: 8,
  firstOffset: 16,
  lastNs: 24,
  lastOffset: 32,
  firstErrorNs: 40,
  lastErrorNs: 44,
  reserved: 48,
} as const;
/** Two clocks of which only one reading is known may drift so far apart in a second. */
const DRIFT = 100e-6;
const STAMP_BITS = 48n;
const TAGS = 2 ** 16;
/** Clocks that have drifted apart may make a stamp look later than now. */
const SLACK_NS = 3_600e9;

export class GpuClock {
  readonly #firstNs: number;
  readonly #lastNs: number;
  readonly #offset: bigint;
  /** What the offset grows by in a nanosecond. */
  readonly #drift: number;
  readonly #lastErrorNs: number;
  readonly #driftError: number;

  constructor(view: DataView, at: number) {
    this.#firstNs = readU64(view, at + CLOCK.firstNs);
    this.#lastNs = readU64(view, at + CLOCK.lastNs);
    this.#offset = view.getBigUint64(at + CLOCK.firstOffset, true);
    const grown = Number(BigInt.asIntN(64, view.getBigUint64(at + CLOCK.lastOffset, true) - this.#offset));
    const between = this.#lastNs - this.#firstNs;
    const firstErrorNs = view.getUint32(at + CLOCK.firstErrorNs, true);
    this.#lastErrorNs = view.getUint32(at + CLOCK.lastErrorNs, true);
    this.#driftError = between > 0 ? Math.min(DRIFT, (firstErrorNs + this.#lastErrorNs) / between) : DRIFT;
    // Readings close to each other tell nothing about a drift.
    this.#drift = this.#driftError < DRIFT ? grown / between : 0;
  }

  /** CLOCK_MONOTONIC at a stamp that was read at `nowNs`, which is later; 0: it is of another operation, or none. */
  monotonicNs(stamp: bigint, sequence: number, nowNs: number): number {
    const tag = Math.floor((sequence - 1) / RECORDER_ENTRIES) % TAGS;
    if (stamp === 0n || Number(stamp >> STAMP_BITS) !== tag) return 0;
    const latest = BigInt(nowNs + SLACK_NS) - this.#offset;
    const before = Number(BigInt.asUintN(Number(STAMP_BITS), latest - stamp));
    const first = nowNs + SLACK_NS - before;
    return Math.max(0, Math.round(first + (first - this.#firstNs) * this.#drift));
  }

  /** By how much that may be wrong for times around `nowNs`. */
  errorNs(nowNs: number): number {
    return Math.ceil(this.#lastErrorNs + Math.max(0, nowNs - this.#lastNs) * this.#driftError);
  }
}

/** By index; null: never read, or being written just now. */
export function readClocks(view: DataView, first: number): (GpuClock | null)[] {
  return Array.from({ length: RECORDER_GPUS }, (_, index) => {
    const at = first + index * CLOCK_BYTES;
    const sequence = readU64(view, at + CLOCK.sequence);
    if (sequence === 0 || sequence % 2 === 1) return null;
    const clock = new GpuClock(view, at);
    return readU64(view, at + CLOCK.sequence) === sequence ? clock : null;
  });
}
