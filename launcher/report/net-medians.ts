/** Which pairs of NICs are far slower than the others. */
import { isMeasured } from './net-rows.ts';
import type { MeasuredPair, NetPair } from './net-rows.ts';

export interface NetMedians {
  /** Microseconds. */
  readonly latencyUs: number;
  /** GB/s, by size. */
  readonly gigabytes: readonly number[];
}

/** Times the median: twice the latency, half of the bandwidth. */
const FAR = 2;

/** null: no pair was measured. */
export function mediansOf(pairs: readonly NetPair[]): NetMedians | null {
  const measured = pairs.filter(isMeasured);
  const [first] = measured;
  if (first === undefined) return null;
  return {
    latencyUs: median(measured.map(({ latencyUs }) => latencyUs)),
    gigabytes: first.gigabytes.map((_, size) => median(measured.map(({ gigabytes }) => gigabytes[size] ?? 0))),
  };
}

interface Slowness {
  readonly latency: boolean;
  /** By size. */
  readonly gigabytes: readonly boolean[];
}

export function slownessOf({ latencyUs, gigabytes }: MeasuredPair, medians: NetMedians): Slowness {
  return {
    latency: latencyUs > medians.latencyUs * FAR,
    gigabytes: gigabytes.map((value, size) => value < (medians.gigabytes[size] ?? 0) / FAR),
  };
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? 0;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? 0)) / 2;
}
