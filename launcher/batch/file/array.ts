/** Arrays of tasks. */
import type { ArraySpec } from '../model/spec.ts';
import { parseIndexes } from './array-range.ts';
import { productOf } from './array-values.ts';
import { itemOf } from './item.ts';
import type { JobSource } from './job-source.ts';

/** Null for a job that is no array. Throws a FailureError (usage). */
export function readArray({ map, raw, source }: JobSource): ArraySpec | null {
  const item = itemOf(map, 'array');
  if (item === null || item.type === 'list') return null;
  if (item.type === 'map') {
    const limits = typeof raw.array === 'object' ? raw.array : {};
    return {
      tasks: productOf(item, source),
      maxParallel: limits.max_parallel ?? null,
      maxFails: limits.max_fails ?? null,
    };
  }
  const { indexes, maxParallel } = parseIndexes(item, source);
  return { tasks: indexes.map((index) => ({ index, values: {} })), maxParallel, maxFails: null };
}
