/** Numbers and lists for people. */
import { ranges } from './ranges.ts';

/** MB/s → GB/s with three digits at most: "371", "12.5", "0.75". */
export function gigabytes(megabytes: number): string {
  const value = megabytes / 1000;
  if (value >= 100) return value.toFixed(0);
  return String(Number(value.toFixed(value >= 10 ? 1 : 2)));
}

/** "sm 90"; a file that providers ship may not say. */
export function capability(computeCapability: number): string {
  return `sm ${computeCapability === 0 ? 'unknown' : computeCapability}`;
}

/** "GPU 3", "GPUs 1-4,7" */
export function gpuList(indexes: readonly number[]): string {
  const sorted = [...indexes].toSorted((one, other) => one - other);
  return `GPU${sorted.length === 1 ? '' : 's'} ${ranges(sorted)}`;
}

/** Each value once, in the order of their first appearance. */
export function different<Value>(values: readonly Value[]): Value[] {
  return [...new Set(values)];
}
