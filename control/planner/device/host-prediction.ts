/**
 * How long a variant takes on the host device inside a host, by a simple model: its number of hops, and the bytes that the busiest rank
 * sends. It comes within a factor of two of docs/performance.md's tables. Between hosts: tuning/between.ts.
 */
import type { CollectiveName, ProtocolName, TuningRow, Variant } from '../../plan/types.ts';

/** Microseconds of the first hop and of each further one, and bytes per microsecond that a rank sends. */
interface Speed {
  readonly first: number;
  readonly further: number;
  readonly bytes: number;
}

/** Two ranks on two cores, operations queued together. */
const SPEEDS: Readonly<Record<ProtocolName, Speed>> = {
  ll: { first: 0.45, further: 0.3, bytes: 5000 },
  ll128: { first: 0.45, further: 0.3, bytes: 5000 },
  simple: { first: 0.5, further: 0.4, bytes: 13_000 },
};

const MEBIBYTE = 2 ** 20;

interface Ranks {
  readonly ranks: number;
  /** On the host that has most; below one counts as one. */
  readonly ranksPerCore: number;
}

/** The same rows, each variant with its time. */
export function withPredictions(rows: readonly TuningRow[], { ranks, ranksPerCore }: Ranks): TuningRow[] {
  const load = Math.max(1, ranksPerCore);
  const predicted = (collective: CollectiveName, variant: Variant): Variant => {
    const { first, further, bytes } = SPEEDS[variant.protocol];
    return {
      ...variant,
      predictedMicroseconds: rounded(load * (first + further * (hops(collective, variant, ranks) - 1))),
      predictedMicrosecondsPerMebibyte: rounded((load * sentBytes(collective, variant, ranks) * MEBIBYTE) / bytes),
    };
  };
  return rows.map(({ collective, upToBytes, variants }) => ({
    collective,
    upToBytes,
    variants: variants.map((variant) => predicted(collective, variant)),
  }));
}

/** Rounds to a value that a plan's binary form holds exactly; at least 1/64, because 0 means no prediction. */
export function rounded(microseconds: number): number {
  return Math.max(1, Math.round(microseconds * 64)) / 64;
}

/** Number of hops in sequence until the last rank has its result. */
function hops(collective: CollectiveName, { algorithm }: Variant, ranks: number): number {
  const both = collective === 'allReduce' || collective === 'barrier' ? 2 : 1;
  if (algorithm === 'directTwoShot') return 2;
  if (algorithm === 'tree') return Math.max(1, both * Math.ceil(Math.log2(ranks)));
  if (algorithm === 'ring') return Math.max(1, both * (ranks - 1));
  return 1;
}

/** What the busiest rank sends, by the size of its larger buffer. */
function sentBytes(collective: CollectiveName, { algorithm }: Variant, ranks: number): number {
  const others = (ranks - 1) / ranks;
  if (ranks === 1) return 1; // a copy
  switch (collective) {
    case 'allReduce':
      if (algorithm === 'directOneShot') return ranks - 1;
      return algorithm === 'tree' ? 2 : 2 * others;
    case 'broadcast':
    case 'reduce':
      if (algorithm === 'directOneShot') return ranks - 1;
      return algorithm === 'tree' ? 2 : 1;
    case 'sendRecv':
      return 1;
    default:
      return others;
  }
}
