/** One comparison, and the table it prints. */
import type { Programs } from './programs.ts';

export interface Row {
  /** "n=32", "4 KiB": what this row is about. */
  readonly what: string;
  readonly unit: 'ms' | 'µs' | 'ns' | 'MB/s' | 'MB' | 'B' | 'messages' | '%';
  readonly ours: number | null;
  readonly peers: Readonly<Record<string, number | null>>;
  readonly goal: Goal | null;
  /** ours ÷ the peer of the goal, where it was taken round by round; else that of the medians. */
  readonly ratio?: number | null;
}

/**
 * What `ours` must reach: at most (or at least) `bound`, or at most `factor` times the fastest of the named peers.
 */
export type Goal =
  | { readonly kind: 'at-most' | 'at-least'; readonly bound: number }
  | { readonly kind: 'ratio'; readonly factor: number; readonly against: readonly string[] };

export interface FigureContext {
  readonly programs: Programs;
  /** Medians are taken of this many samples. */
  readonly samples: number;
}

export interface Figure {
  readonly name: string;
  readonly title: string;
  /** Rows as they are ready; null instead of rows, with the reason, where this machine cannot. */
  readonly run: (context: FigureContext) => AsyncGenerator<Row, void, undefined>;
  readonly unavailable: () => string | null;
}

export interface Judged extends Row {
  /** ours ÷ the fastest peer of the goal; null without both. */
  readonly ratio: number | null;
  readonly verdict: 'OK' | 'MISS' | '';
}

export function judge(row: Row): Judged {
  const { goal, ours } = row;
  if (goal === null) return { ...row, ratio: row.ratio ?? null, verdict: '' };
  if (goal.kind !== 'ratio') {
    const met = ours !== null && (goal.kind === 'at-most' ? ours <= goal.bound : ours >= goal.bound);
    return { ...row, ratio: null, verdict: met ? 'OK' : 'MISS' };
  }
  const rivals = goal.against.map((name) => row.peers[name] ?? null).filter((value) => value !== null);
  if (ours === null) return { ...row, ratio: null, verdict: 'MISS' };
  if (rivals.length === 0) return { ...row, ratio: null, verdict: '' };
  const ratio = row.ratio ?? ours / Math.min(...rivals);
  return { ...row, ratio, verdict: ratio <= goal.factor ? 'OK' : 'MISS' };
}

const goalText = (goal: Goal | null): string => {
  if (goal === null) return '';
  if (goal.kind === 'ratio') return `≤ ${goal.factor.toFixed(2)} ×`;
  return `${goal.kind === 'at-most' ? '≤' : '≥'} ${goal.bound}`;
};

const number = (value: number | null): string => {
  if (value === null) return 'failed';
  return value < 10 ? value.toFixed(2) : value < 1000 ? value.toFixed(1) : value.toFixed(0);
};

/** A line of the table; the first row of a figure is preceded by `heading`. */
export function line(row: Judged): string {
  const peers = Object.entries(row.peers).map(([name, value]) => `${name} ${number(value)}`);
  const cells = [
    row.what.padEnd(14),
    `ours ${number(row.ours)} ${row.unit}`.padEnd(20),
    peers.join('   ').padEnd(44),
    (row.ratio === null ? '' : `${row.ratio.toFixed(2)} ×`).padEnd(9),
    goalText(row.goal).padEnd(10),
    row.verdict,
  ];
  return `  ${cells.join(' ')}`.trimEnd();
}
