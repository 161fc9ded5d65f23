/**
 * Which hosts are measured with which: disjoint pairs at the same time, so that many hosts take no longer than few. First neighbours; then whoever
 * was slow with somebody who was not (as DLRover's node check does), or, where nobody was, the other neighbours.
 */
export type HostPair = readonly [string, string];

/** Rates of a pair are those of its slower way; null: it failed. */
interface MeasuredRate {
  readonly pair: HostPair;
  readonly rate: number | null;
}

/** Of the median. */
export const SLOW = 0.5;

/** Of an odd number of hosts the last one waits for the second round. */
export function firstRound(hosts: readonly string[]): HostPair[] {
  return neighbours(hosts, 0);
}

export function secondRound(hosts: readonly string[], measured: readonly MeasuredRate[]): HostPair[] {
  if (hosts.length < 3) return [];
  const suspects = suspectsIn(measured);
  if (suspects.length === 0) return neighbours(hosts, 1);
  const good = measured.flatMap(({ pair }) => pair).filter((host) => !suspects.includes(host));
  const tested = new Set(measured.flatMap(({ pair }) => pair));
  // Who had no partner has shown nothing yet.
  const open = [...suspects, ...hosts.filter((host) => !tested.has(host))];
  return open.flatMap((host, index) => {
    const partner = good[index];
    return partner === undefined ? [] : [[host, partner] as const];
  });
}

/** Hosts of pairs that failed, or were far slower than most. */
function suspectsIn(measured: readonly MeasuredRate[]): string[] {
  const rates = measured.flatMap(({ rate }) => rate ?? []).toSorted((one, other) => one - other);
  const usual = rates[rates.length >> 1] ?? 0;
  return measured.filter(({ rate }) => rate === null || rate < SLOW * usual).flatMap(({ pair }) => pair);
}

/** `from`: of the first pair. In a ring, so that the last one is the first one's neighbour. */
function neighbours(hosts: readonly string[], from: number): HostPair[] {
  const pairs: HostPair[] = [];
  for (let at = from; at + 1 < hosts.length + from; at += 2) {
    const [one, other] = [hosts[at % hosts.length], hosts[(at + 1) % hosts.length]];
    if (one !== undefined && other !== undefined && one !== other) pairs.push([one, other]);
  }
  return pairs;
}
