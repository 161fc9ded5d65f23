/**
 * Which hosts are measured with which: disjoint pairs at the same time, so that many hosts take no longer than few. First neighbours; then whoever
 * was slow with somebody who was not (as DLRover's node check does), or, where nobody or everybody was, the other neighbours.
 */
export type HostPair = readonly [string, string];

/** For suspects, where few hosts are good. */
const MAX_ROUNDS = 4;

/** Of the median. */
export const SLOW = 0.5;

/** Of an odd number of hosts the last one waits for the second round. */
export function firstRound(hosts: readonly string[]): HostPair[] {
  return neighbours(hosts, 0);
}

/** Rounds that follow the first one. `suspect`: its pairs that were slow, lost packets or failed. */
export function nextRounds(
  hosts: readonly string[],
  first: readonly HostPair[],
  suspect: readonly HostPair[],
): HostPair[][] {
  if (hosts.length < 3) return [];
  const suspects = hosts.filter((host) => suspect.some((pair) => pair.includes(host)));
  const tested = first.flat();
  const good = tested.filter((host) => !suspects.includes(host));
  if (suspects.length === 0 || good.length === 0) return [neighbours(hosts, 1)];
  // Who had no partner has shown nothing yet.
  const open = [...suspects, ...hosts.filter((host) => !tested.includes(host))];
  const rounds = Array.from({ length: Math.min(MAX_ROUNDS, Math.ceil(open.length / good.length)) }, (_, round) =>
    open.slice(round * good.length, (round + 1) * good.length),
  );
  return rounds.map((round) =>
    round.flatMap((host, index) => {
      const partner = good[index];
      return partner === undefined ? [] : [[host, partner] as const];
    }),
  );
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
