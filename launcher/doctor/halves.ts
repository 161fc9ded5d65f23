/**
 * Halves of the hosts at full size: collectives over many hosts show what pairs do not, a switch with too little room or a host that is slow only
 * when all send. The slower half is halved again, filled up with hosts of the faster one so that the size stays, until two hosts are left.
 */
import type { Finding } from './finding.ts';

export interface GroupRate {
  readonly hosts: readonly string[];
  /** Bus bandwidth in GB/s; null: it failed, and `error` says why. */
  readonly rate: number | null;
  /** Elements of the result that were not what they should be. */
  readonly wrong: number;
  readonly error: string | null;
}

/** Measures disjoint groups at the same time. */
type MeasureGroups = (groups: readonly (readonly string[])[]) => Promise<readonly GroupRate[]>;

/** Fewer hosts make halves of one host. */
const MIN_HOSTS = 4;
const LEFT = 2;

interface Suspicion {
  readonly suspects: readonly string[];
  readonly slow: GroupRate;
  readonly fast: GroupRate;
}

/** `slower`: part of the faster half's rate below which the other one is slow. */
export async function halvesFindings(
  hosts: readonly string[],
  slower: number,
  measure: MeasureGroups,
): Promise<Finding[]> {
  if (hosts.length < 2) return [];
  const groups = hosts.length < MIN_HOSTS ? [hosts] : halves(hosts);
  const first = await measure(groups);
  const bad = first.flatMap(badData);
  if (bad.length > 0) return bad;
  if (!isSlow(first, slower)) return [okOf('network.halves'), okOf('data.verified')];
  // A busy moment is no fault.
  const again = await measure(groups);
  const better = again.map((group, index) => faster(group, first[index] ?? group));
  const suspicion = suspicionIn(better, slower);
  const found = suspicion === null ? [okOf('network.halves')] : [await narrowed(suspicion, slower, measure)];
  return [...found, ...(again.flatMap(badData).length > 0 ? again.flatMap(badData) : [okOf('data.verified')])];
}

function halves(hosts: readonly string[]): (readonly string[])[] {
  const middle = hosts.length >> 1;
  return [hosts.slice(0, middle), hosts.slice(middle, 2 * middle)];
}

function isSlow(groups: readonly GroupRate[], slower: number): boolean {
  return suspicionIn(groups, slower) !== null;
}

function suspicionIn(groups: readonly GroupRate[], slower: number): Suspicion | null {
  const [slow, fast] = groups.toSorted((one, other) => (one.rate ?? 0) - (other.rate ?? 0));
  if (slow === undefined || fast === undefined) return null;
  return (slow.rate ?? 0) < slower * (fast.rate ?? 0) ? { suspects: slow.hosts, slow, fast } : null;
}

function faster(one: GroupRate, other: GroupRate): GroupRate {
  return (one.rate ?? 0) >= (other.rate ?? 0) ? one : other;
}

/** Whether the suspects stay slow among others. */
async function narrowed({ suspects, slow, fast }: Suspicion, slower: number, measure: MeasureGroups): Promise<Finding> {
  let left = suspects;
  while (left.length > LEFT) {
    const parts = [left.slice(0, left.length >> 1), left.slice(left.length >> 1)];
    const filled = parts.map((part) => [...part, ...fast.hosts.slice(0, suspects.length - part.length)]);
    const rates: GroupRate[] = [];
    // One after the other: both have the same hosts of the faster half.
    for (const group of filled) rates.push(...(await measure([group])));
    const slowParts = parts.filter((_, index) => (rates[index]?.rate ?? 0) < slower * (fast.rate ?? 0));
    const [one] = slowParts;
    if (one === undefined || slowParts.length > 1) break;
    left = one;
  }
  const rate = `${(slow.rate ?? 0).toPrecision(3)} GB/s, as many others ${(fast.rate ?? 0).toPrecision(3)} GB/s`;
  const whole = left.length === suspects.length && left.length > LEFT;
  const message = whole
    ? `are slow together, though not in parts: ${rate}`
    : `hold up the half of the hosts in which they are: ${rate}`;
  return {
    check: 'network.halves',
    answer: 'warn',
    host: null,
    subject: left.join(', '),
    message,
    remedy: whole
      ? 'see the switch that they have in common, and its links upwards'
      : 'see their cards, cables and ports of the switch; --exclude keeps them out of jobs until then',
  };
}

function badData({ hosts, wrong, error }: GroupRate): Finding[] {
  const common = { host: null, subject: hosts.join(', '), answer: 'fail' } as const;
  if (error !== null)
    return [
      { ...common, check: 'network.halves', message: error, remedy: 'see what ncclrun perf all_reduce says there' },
    ];
  if (wrong === 0) return [];
  const message = `${wrong} elements of a sum over them were wrong`;
  return [
    {
      ...common,
      check: 'data.verified',
      message,
      remedy: 'use none of them until the one is found that changes data: ncclrun perf all_reduce --check',
    },
  ];
}

function okOf(check: string): Finding {
  return { check, answer: 'ok', host: null, subject: '', message: '', remedy: null };
}
