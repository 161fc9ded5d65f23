/** How far the model of several hosts is off, by what was measured on hosts and a network of the same kind. */
import { countByLayout } from './key.ts';
import type { BetweenHosts } from './key.ts';
import type { MeasuredTimes, Table } from './table.ts';
import { predictBetween } from '../tuning/between.ts';
import type { Correction, Corrections } from '../tuning/between-costs.ts';
import type { BetweenTerms } from '../tuning/situation.ts';
import { ALGORITHMS } from '../../plan/layout.ts';
import type { AlgorithmName, CollectiveName } from '../../plan/types.ts';

/** Part of a predicted time from which it counts as one of latency, or of bandwidth, alone. */
const DOMINANT = 0.8;
/** Factors beyond it say that the model does not hold at all. */
const MOST = 20;

const WITH_ROOT: readonly CollectiveName[] = ['broadcast', 'reduce', 'gather', 'scatter'];

/** A measured time beside the parts of the predicted one. */
interface Point {
  readonly algorithm: AlgorithmName;
  readonly time: number;
  /** Predicted before the first byte, and for all bytes. */
  readonly before: number;
  readonly moved: number;
  /** Operations with a root that are queued one behind another overlap: their time is not one of latency. */
  readonly isQueued: boolean;
}

/** `terms`: of the hosts that were measured, without corrections. */
export function correctionsOf(table: Table, between: BetweenHosts, terms: BetweenTerms): Corrections {
  const points = pointsOf(table, between, terms);
  const latencies = ratiosOf(points, ({ isQueued, time, before, moved }) =>
    !isQueued && before >= DOMINANT * (before + moved) ? time / (before + moved) : null,
  );
  // What is not the bytes' is taken as the latency's correction has it.
  const bandwidths = ratiosOf(points, ({ algorithm, time, before, moved }) =>
    moved >= DOMINANT * (before + moved)
      ? Math.max(time - before * (latencies(algorithm) ?? 1), time / 2) / moved
      : null,
  );
  return Object.fromEntries(
    ALGORITHMS.map((algorithm): [string, Correction] => [
      algorithm,
      { latency: latencies(algorithm) ?? 1, bandwidth: bandwidths(algorithm) ?? 1 },
    ]),
  );
}

function pointsOf({ collectives }: Table, { layout }: BetweenHosts, terms: BetweenTerms): Point[] {
  const extent = countByLayout(layout);
  return collectives.flatMap(({ collective, variants }) => {
    const simple = variants.filter(({ protocol }) => protocol === 'simple');
    return [...Map.groupBy(simple, (variant) => variant.algorithm)].flatMap(([algorithm, own]) => {
      const prediction = predictBetween(collective, algorithm, extent, terms);
      if (prediction === null) return [];
      const { microseconds, bytesPerMicrosecond, fill } = prediction;
      return [...fastestOf(own.map((variant) => variant.times))].map(([bytes, time]) => {
        const filled = fill === null ? 0 : fill.microseconds * Math.min(1, bytes / fill.bytes);
        const [before, moved] = [microseconds + filled, bytes / bytesPerMicrosecond];
        return { algorithm, time, before, moved, isQueued: WITH_ROOT.includes(collective) };
      });
    });
  });
}

/** By size, over all numbers of channels. */
function fastestOf(all: readonly MeasuredTimes[]): Map<number, number> {
  const fastest = new Map<number, number>();
  for (const [bytes, time] of all.flat()) fastest.set(bytes, Math.min(time, fastest.get(bytes) ?? Infinity));
  return fastest;
}

/**
 * The median of each algorithm's ratios; null: there are none at all. An algorithm that was not measured is as far off as the others, or it would be
 * taken for its lack of a measurement. `ratioOf` returns null for a point that says nothing.
 */
function ratiosOf(
  points: readonly Point[],
  ratioOf: (point: Point) => number | null,
): (algorithm: AlgorithmName) => number | null {
  const known = points.flatMap((point) => {
    const ratio = ratioOf(point);
    return ratio === null ? [] : [{ algorithm: point.algorithm, ratio }];
  });
  const byAlgorithm = new Map(
    [...Map.groupBy(known, ({ algorithm }) => algorithm)].map(([algorithm, own]) => [algorithm, median(own)] as const),
  );
  const usual = median(known);
  return (algorithm) => byAlgorithm.get(algorithm) ?? usual;
}

function median(ratios: readonly { readonly ratio: number }[]): number | null {
  const sorted = ratios.map(({ ratio }) => ratio).toSorted((one, other) => one - other);
  const middle = sorted[Math.floor(sorted.length / 2)];
  return middle === undefined ? null : Math.min(MOST, Math.max(1 / MOST, middle));
}
