/** What the ranks of `ncclrun perf` measure: one JSON object per line on rank 0's stdout, a head first, then rows. */
import { objectOfLine } from './measured-lines.ts';

export interface PerfHead {
  readonly collective: string;
  readonly device: string;
  readonly ranks: number;
  readonly hosts: number;
}

/** One measurement. Bandwidths in GB/s (10⁹ bytes), `count` in elements, `wrong` in elements of all ranks, null if not checked. */
export interface PerfRow {
  readonly bytes: number;
  readonly count: number;
  readonly type: string;
  readonly op: string;
  readonly root: number;
  readonly inPlace: boolean;
  readonly timeUs: number;
  readonly algbw: number;
  readonly busbw: number;
  readonly wrong: number | null;
}

/** null: the line is neither; it is somebody else's output. */
export function parsePerfLine(line: string): PerfHead | PerfRow | null {
  const value = objectOfLine(line);
  if (value === null) return null;
  return isRow(value) || isHead(value) ? value : null;
}

export function isRow(value: unknown): value is PerfRow {
  if (!isObject(value)) return false;
  const numbers = [value['bytes'], value['count'], value['root'], value['timeUs'], value['algbw'], value['busbw']];
  return (
    numbers.every((number) => typeof number === 'number') &&
    typeof value['type'] === 'string' &&
    typeof value['op'] === 'string' &&
    typeof value['inPlace'] === 'boolean' &&
    (value['wrong'] === null || typeof value['wrong'] === 'number')
  );
}

function isHead(value: unknown): value is PerfHead {
  if (!isObject(value)) return false;
  return (
    typeof value['collective'] === 'string' &&
    typeof value['device'] === 'string' &&
    typeof value['ranks'] === 'number' &&
    typeof value['hosts'] === 'number'
  );
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
