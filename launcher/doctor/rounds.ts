/**
 * Which hosts are measured with which: disjoint pairs at the same time, so that many hosts take no longer than few. First neighbours; then whoever
 * was slow with somebody who was not (as DLRover's node check does), or, where nobody was, the other neighbours.
 */
export type HostPair = readonly [string, string];

/** Of the median. */
export const SLOW = 0.5;

/** Of an odd number of hosts the last one waits for the second round. */
export function firstRound(hosts: readonly string[]): HostPair[] {
  return neighbours(hosts, 0);
}

/** `suspect`: pairs of the first round that were slow, lost packets or failed. */
export function secondRound(
  hosts: readonly string[],
  first: readonly HostPair[],
  suspect: readonly HostPair[],
): HostPair[] {
  if (hosts.length < 3) return [];
  if (suspect.length === 0) return neighbours(hosts, 1);
  const suspects = hosts.filter((host) => suspect.some((pair) => pair.includes(host)));
  const tested = first.flat();
  const good = tested.filter((host) => !suspects.includes(host));
  // Who had no partner has shown nothing yet.
  const open = [...suspects, ...hosts.filter((host) => !tested.includes(host))];
  return open.flatMap((host, index) => {
    const partner = good[index];
    return partner === undefined ? [] : [[host, partner] as const];
  });
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
