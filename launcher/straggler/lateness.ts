/**
 * Who regularly begins the operations of a communicator last, and by how much. Others wait for the last one, so that only a rank that is last most
 * of the time, by more than chance and by enough to matter, makes the job slower.
 */

/** When each rank of a communicator began some successive collectives. */
export interface ArrivalTrace {
  /** Milliseconds by one clock, by the position of the rank in `ranks`; NaN: not known. */
  readonly operations: readonly (readonly number[])[];
  /** Median time that each rank was in no operation of any communicator from one of these to the next. */
  readonly outsideMs: readonly number[];
  /** Ranks of the job, with their hosts. */
  readonly ranks: readonly { readonly rank: number; readonly host: string }[];
  /** How wrong the times of two ranks may be against each other; 0 where all read the same clock. */
  readonly clockErrorMs: number;
}

export interface Lateness {
  /** One rank, or all of a host. */
  readonly ranks: readonly number[];
  readonly hosts: readonly string[];
  readonly isHost: boolean;
  /** Operations that were compared, and in how many of them it was last. */
  readonly operations: number;
  readonly last: number;
  /** Median of its lateness behind the median rank, and of the time between operations. */
  readonly latenessMs: number;
  readonly periodMs: number;
  /** Part of the period that would be saved without it. */
  readonly gain: number;
}

const MIN_OPERATIONS = 20;
const MIN_SHARE = 0.6;
const MAX_CHANCE = 1e-6;
const MIN_MS = 1;
/** Of the period: of a rank that is 5 % slower, as much is left beside what varies by chance. */
const MIN_PART = 0.04;
const CLOCK_ERRORS = 3;

/** For StragglerTracker. */
export function describeLateness({ ranks, latenessMs }: Lateness): { subject: string; amount: number } {
  return { subject: ranks.join(), amount: latenessMs };
}

/** Null: nobody stands out. */
export function latenessIn(trace: ArrivalTrace): Lateness | null {
  const operations = trace.operations.filter((arrivals) => arrivals.every((time) => !Number.isNaN(time)));
  if (operations.length < MIN_OPERATIONS || trace.ranks.length < 2) return null;
  const periodMs = periodOf(operations);
  const enough = Math.max(MIN_PART * periodMs, MIN_MS, CLOCK_ERRORS * trace.clockErrorMs);
  const middles = operations.map(median);
  const late = trace.ranks.map((_, index) =>
    median(operations.map((arrivals, at) => (arrivals[index] ?? 0) - (middles[at] ?? 0))),
  );
  const candidates = [...hostsOf(trace), ...trace.ranks.map((_, index) => [index])];
  const outside = median(trace.outsideMs);
  for (const own of candidates) {
    // Whoever waits for others before it comes, as the stages of a pipeline do, is not to blame.
    if (!own.every((index) => (trace.outsideMs[index] ?? 0) - outside > enough / 2)) continue;
    if (!own.every((index) => (late[index] ?? 0) > enough)) continue;
    const found = judged(trace, operations, own, {
      periodMs,
      latenessMs: median(own.map((index) => late[index] ?? 0)),
    });
    if (found !== null) return found;
  }
  return null;
}

/** The ranks of each host that has several, unless it has at least half of all. */
function hostsOf({ ranks }: ArrivalTrace): number[][] {
  const hosts = new Map<string, number[]>();
  for (const [index, { host }] of ranks.entries()) hosts.set(host, [...(hosts.get(host) ?? []), index]);
  return [...hosts.values()].filter((own) => own.length > 1 && own.length < ranks.length / 2);
}

function judged(
  { ranks }: ArrivalTrace,
  operations: readonly (readonly number[])[],
  own: readonly number[],
  { periodMs, latenessMs }: Pick<Lateness, 'periodMs' | 'latenessMs'>,
): Lateness | null {
  const members = new Set(own);
  const savings = operations.map((arrivals) => {
    const [mine, others] = [
      arrivals.filter((_, index) => members.has(index)),
      arrivals.filter((_, index) => !members.has(index)),
    ];
    return Math.max(...mine) - Math.max(...others);
  });
  const last = savings.filter((saving) => saving > 0).length;
  if (last < MIN_SHARE * operations.length) return null;
  if (binomialTail(operations.length, last, own.length / ranks.length) >= MAX_CHANCE) return null;
  const saving = median(savings);
  const gain = saving / Math.max(Number.EPSILON, periodMs - saving);
  if (gain < MIN_PART) return null;
  const named = own.flatMap((index) => ranks[index] ?? []);
  return {
    ranks: named.map(({ rank }) => rank),
    hosts: [...new Set(named.map(({ host }) => host))],
    isHost: own.length > 1,
    operations: operations.length,
    last,
    latenessMs,
    periodMs,
    gain,
  };
}

/** Median time from one operation to the next. */
function periodOf(operations: readonly (readonly number[])[]): number {
  const middles = operations.map(median);
  return Math.max(Number.EPSILON, median(middles.slice(1).map((time, index) => time - (middles[index] ?? time))));
}

/** The chance of at least `least` hits in `tries`, each with chance `p`. */
export function binomialTail(tries: number, least: number, p: number): number {
  let logChoose = 0;
  let sum = 0;
  for (let hits = 0; hits <= tries; hits++) {
    if (hits > 0) logChoose += Math.log(tries - hits + 1) - Math.log(hits);
    if (hits >= least) sum += Math.exp(logChoose + hits * Math.log(p) + (tries - hits) * Math.log(1 - p));
  }
  return Math.min(1, sum);
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const half = Math.floor(sorted.length / 2);
  const upper = sorted[half] ?? 0;
  return sorted.length % 2 === 1 ? upper : ((sorted[half - 1] ?? upper) + upper) / 2;
}
