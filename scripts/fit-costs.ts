/**
 * The planner's constants of variants inside a host (INTRA_HOST_COSTS in control/planner/tuning/constants.ts), fitted to measured times of two GPUs such that the
 * worst is off least, where a variant that is slower than others counts less: `node scripts/fit-costs.ts FILE [GB/s]`. FILE: a table of `ncclrun tune -n 2
 * --device cuda`, or lines of collective, algorithm, protocol, bytes and microseconds with tabs between them. GB/s: of all NVLinks of a GPU, as
 * `ncclrun plan` has it.
 */
import { readFileSync } from 'node:fs';
import * as v from 'valibot';
import { ALGORITHMS, COLLECTIVES, PROTOCOLS } from '../control/plan/layout.ts';
import { isCollnet } from '../control/plan/possible.ts';
import type { AlgorithmName, CollectiveName, ProtocolName } from '../control/plan/types.ts';
import { parseTable } from '../control/planner/measured/table.ts';
import type { InsideAlgorithm, IntraHostCost, TrafficPattern } from '../control/planner/tuning/constants.ts';
import { patternOf, sentShare } from '../control/planner/tuning/inside.ts';

const RANKS = 2;
/** Of an H200: 18 links. */
export const H200_LINKS = 18 * 20.6;
/** KiB from which on all channels are busy. */
const FILLS = Array.from({ length: 14 }, (_, power) => 16 * 2 ** power);
/** Of Lawson's method (Math. Comp. 22, 1968): weighted least squares, again and again, each point weighted by how far it was off. */
const ITERATIONS = 400;

export interface MeasuredTime {
  readonly collective: CollectiveName;
  readonly algorithm: AlgorithmName;
  readonly protocol: ProtocolName;
  readonly bytes: number;
  readonly microseconds: number;
}

export interface FittedCost extends IntraHostCost {
  readonly pattern: TrafficPattern;
  readonly algorithm: InsideAlgorithm;
  readonly protocol: ProtocolName;
  /** Of the times: how far off the model is, 0.1 for a tenth. */
  readonly worst: number;
  readonly mean: number;
  /** The worst, those of slow variants counted less. */
  readonly counted: number;
}

/** What a variant costs over, and how long it took. */
interface Point {
  readonly sent: number;
  readonly microseconds: number;
  /** How much it is to count: what the fastest variant took, as a part of it. */
  readonly counts: number;
}

const line = v.tuple([
  v.picklist(COLLECTIVES),
  v.picklist(ALGORITHMS),
  v.picklist(PROTOCOLS),
  v.pipe(v.string(), v.transform(Number), v.finite()),
  v.pipe(v.string(), v.transform(Number), v.finite()),
]);

/** Of a table each variant's best, whatever its channels and threads: the planner gives a size as many as it keeps busy. Throws where it is neither. */
export function measuredTimes(text: string): MeasuredTime[] {
  if (text.startsWith('{')) {
    return parseTable(text).collectives.flatMap(({ collective, variants }) =>
      variants.flatMap(({ algorithm, protocol, times }) =>
        times.map(([bytes, microseconds]) => ({ collective, algorithm, protocol, bytes, microseconds })),
      ),
    );
  }
  const rows = text.trim().split('\n').slice(1);
  return rows.map((row) => {
    const [collective, algorithm, protocol, bytes, microseconds] = v.parse(line, row.split('\t'));
    return { collective, algorithm, protocol, bytes, microseconds };
  });
}

/** `links`: GB/s that a GPU's links carry. */
export function fitCosts(times: readonly MeasuredTime[], links: number): FittedCost[] {
  const best = new Map<string, MeasuredTime>();
  const fastest = new Map<string, number>();
  for (const time of times) {
    const name = `${time.collective} ${time.algorithm} ${time.protocol} ${time.bytes}`;
    if (time.microseconds < (best.get(name)?.microseconds ?? Infinity)) best.set(name, time);
    const operation = `${time.collective} ${time.bytes}`;
    fastest.set(operation, Math.min(time.microseconds, fastest.get(operation) ?? Infinity));
  }
  const groups = new Map<string, Group>();
  for (const { collective, algorithm, protocol, bytes, microseconds } of best.values()) {
    const sent = collective === 'barrier' ? null : sentShare(collective, algorithm, RANKS);
    if (algorithm === 'copyEngine' || isCollnet(algorithm) || sent === null) continue;
    const cost = { pattern: patternOf(collective), algorithm, protocol };
    const name = `${cost.pattern} ${algorithm} ${protocol}`;
    const group: Group = groups.get(name) ?? { cost, points: [] };
    groups.set(name, group);
    const counts = (fastest.get(`${collective} ${bytes}`) ?? microseconds) / microseconds;
    group.points.push({ sent: sent * bytes, microseconds, counts });
  }
  return [...groups.values()].map(({ cost, points }) => ({ ...cost, ...fit(points, links) }));
}

interface Group {
  readonly cost: Pick<FittedCost, 'pattern' | 'algorithm' | 'protocol'>;
  readonly points: Point[];
}

type Fit = IntraHostCost & Pick<FittedCost, 'worst' | 'mean' | 'counted'>;

function fit(points: readonly Point[], links: number): Fit {
  const fits = FILLS.map((kibibytes) => fitWith(points, kibibytes * 1024, links));
  return fits.reduce((one, other) => (other.counted < one.counted ? other : one));
}

function fitWith(points: readonly Point[], fillBytes: number, links: number): Fit {
  // Relative: what a byte and a full fill add, by what it took.
  const rows = points.map(({ sent, microseconds }) =>
    [1, sent, Math.min(1, sent / fillBytes)].map((value) => value / microseconds),
  );
  const weights = points.map(() => 1 / points.length);
  let found: Fit | null = null;
  for (let iteration = 0; iteration < ITERATIONS; iteration++) {
    const [first = 0, perByte = 0, fill = 0] = leastSquares(
      rows,
      weights.map((weight, index) => weight * (points[index]?.counts ?? 1) ** 2),
    );
    const off = rows.map((row) => Math.abs((row[0] ?? 0) * first + (row[1] ?? 0) * perByte + (row[2] ?? 0) * fill - 1));
    const counted = off.map((one, index) => one * (points[index]?.counts ?? 1));
    const max = Math.max(...counted);
    if (max < (found?.counted ?? Infinity)) {
      const worst = Math.max(...off);
      const mean = off.reduce((sum, one) => sum + one, 0) / off.length;
      const share = 1 / (perByte * links * 1000);
      found = { microseconds: first, share, fillMicroseconds: fill, fillBytes, worst, mean, counted: max };
    }
    const sum = counted.reduce((all, one, index) => all + one * (weights[index] ?? 0), 0);
    if (sum === 0) break;
    counted.forEach((one, index) => (weights[index] = (one * (weights[index] ?? 0)) / sum));
  }
  if (found === null) throw new RangeError('nothing was measured');
  return found;
}

/** The factors of the columns, none below nothing: one that would be is left out, the last such column first. */
function leastSquares(rows: readonly (readonly number[])[], weights: readonly number[]): number[] {
  const width = rows[0]?.length ?? 0;
  const used = Array.from({ length: width }, (_, column) => column);
  for (;;) {
    const found = solve(
      used.map((one) => [
        ...used.map((other) => product(rows, weights, (row) => (row[one] ?? 0) * (row[other] ?? 0))),
        product(rows, weights, (row) => row[one] ?? 0),
      ]),
    );
    const negative = found.findLastIndex((factor) => !(factor >= 0));
    if (negative === -1 || used.length === 1) {
      return Array.from({ length: width }, (_, column) => Math.max(0, found[used.indexOf(column)] ?? 0));
    }
    used.splice(negative, 1);
  }
}

function product(
  rows: readonly (readonly number[])[],
  weights: readonly number[],
  of: (row: readonly number[]) => number,
): number {
  return rows.reduce((sum, row, index) => sum + of(row) * (weights[index] ?? 0), 0);
}

/** Gaussian elimination; the last column is the right side. */
function solve(matrix: number[][]): number[] {
  const size = matrix.length;
  for (let column = 0; column < size; column++) {
    const order = matrix.slice(column).toSorted((a, b) => Math.abs(b[column] ?? 0) - Math.abs(a[column] ?? 0));
    matrix.splice(column, size - column, ...order);
    const pivot = matrix[column] ?? [];
    matrix.forEach((row, index) => {
      if (index === column) return;
      const factor = (row[column] ?? 0) / (pivot[column] ?? 1);
      row.forEach((value, at) => (row[at] = value - factor * (pivot[at] ?? 0)));
    });
  }
  return matrix.map((row, index) => (row[size] ?? 0) / (row[index] ?? 1));
}

/** As INTRA_HOST_COSTS has them: microseconds, share, fill in microseconds and KiB. */
export function costsText(costs: readonly FittedCost[]): string {
  const groups = Map.groupBy(costs, ({ pattern, algorithm }) => `${pattern} ${algorithm}`);
  return [...groups]
    .map(([name, own]) => {
      const quads = PROTOCOLS.toSorted((one, other) => ORDER.indexOf(one) - ORDER.indexOf(other)).map((protocol) => {
        const cost = own.find((one) => one.protocol === protocol);
        return cost === undefined ? 'not measured' : `[${numbers(cost).join(', ')}]`;
      });
      const off = own.map(({ worst, mean }) => `${percent(worst)} (${percent(mean)})`).join(', ');
      return `${name}: costs(${quads.join(', ')}), // off by at most (in the mean) ${off}\n`;
    })
    .join('');
}

const ORDER: readonly ProtocolName[] = ['ll', 'll128', 'simple'];

function numbers({ microseconds, share, fillMicroseconds, fillBytes }: IntraHostCost): number[] {
  return [microseconds.toFixed(2), share.toFixed(3), fillMicroseconds.toFixed(1), fillBytes / 1024].map(Number);
}

function percent(part: number): string {
  return `${(part * 100).toFixed(0)} %`;
}

if (process.argv[1] === import.meta.filename) {
  const [file, links = String(H200_LINKS)] = process.argv.slice(2);
  if (file === undefined) throw new Error('write: node scripts/fit-costs.ts FILE [GB/s]');
  process.stdout.write(costsText(fitCosts(measuredTimes(readFileSync(file, 'utf8')), Number(links))));
}
