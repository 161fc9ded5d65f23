/**
 * By which address each host of a job is reached from the others. Where hosts have several, they try each other: each its successor, and all that of
 * rank 0, where programs meet. One that leads to another host, or is behind a firewall, is passed over.
 */
import { findUnreachedNics } from './reach-rails.ts';
import { pairsOf, portOf, tryAll, type Pair, type ReachHost, type Tried, type Tries } from './reach-tries.ts';

export interface Reached {
  /** By host. */
  readonly addresses: readonly string[];
  /** By host, addresses of NICs that no plan is to use. */
  readonly unreached: readonly ReadonlySet<string>[];
  /** A sentence for each host that others could not reach, and each subnet that is not used. */
  readonly problems: readonly string[];
}

/** `meeting`: index of rank 0's host. Hosts with one address each are asked nothing. */
export async function reachEachOther(hosts: readonly ReachHost[], meeting: number): Promise<Reached> {
  if (hosts.length < 2 || hosts.every(({ addresses }) => addresses.length < 2))
    return {
      addresses: hosts.map(({ addresses }) => addresses[0] ?? '127.0.0.1'),
      unreached: hosts.map(() => new Set<string>()),
      problems: [],
    };
  const ports = await Promise.all(hosts.map((host) => portOf(host)));
  const { addresses, problems } = await settle(hosts, ports, meeting);
  const others = await findUnreachedNics(hosts, addresses, ports, meeting);
  return { addresses, unreached: others.unreached, problems: [...problems, ...others.problems] };
}

/** The address by which each host is reached. */
async function settle(
  hosts: readonly ReachHost[],
  ports: readonly (number | null)[],
  meeting: number,
): Promise<Pick<Reached, 'addresses' | 'problems'>> {
  const allOf =
    (thorough: boolean) =>
    ({ to }: Pair): Tries => ({ addresses: hosts[to]?.addresses ?? [], sources: null, thorough });
  const quick = await tryAll(hosts, ports, pairsOf(hosts.length, meeting), allOf(false));
  const settled = hosts.map((_, index) => common(hosts, index, quick));
  const open = new Set(hosts.flatMap((_, index) => (settled[index] === null ? [index] : [])));
  if (open.size === 0) return { addresses: hosts.map((_, index) => settled[index] ?? ''), problems: [] };
  const again = pairsOf(hosts.length, meeting).filter(({ to }) => open.has(to) && ports[to] !== null);
  const thorough = await tryAll(hosts, ports, again, allOf(true));
  const problems: string[] = [];
  const addresses = hosts.map(({ name, addresses: all }, index) => {
    const found = settled[index] ?? common(hosts, index, thorough);
    if (found !== null) return found;
    const best = bestOf(
      all,
      thorough.filter(({ to }) => to === index),
    );
    problems.push(...best.lacking.map((from) => problemOf(hosts[from]?.name ?? '', name, all)));
    return best.address;
  });
  return { addresses, problems };
}

function problemOf(from: string, to: string, tried: readonly string[]): string {
  const follows = 'a communicator with ranks on both fails when its ranks have tried to connect for 30 s';
  return `${from} cannot reach ${to}: tried ${tried.join(', ')}; ${follows}. See the firewall and the routes between them`;
}

/** The best address by which all that have tried reach the host; null: there is none. */
function common(hosts: readonly ReachHost[], index: number, tried: readonly Tried[]): string | null {
  const its = tried.filter(({ to, found }) => to === index && found !== null);
  return hosts[index]?.addresses.find((address) => its.every(({ found }) => found?.includes(address) === true)) ?? null;
}

/** The address by which most reach it, and who does not. */
function bestOf(addresses: readonly string[], tried: readonly Tried[]): { address: string; lacking: number[] } {
  const lackingAt = (address: string): number[] =>
    tried.flatMap(({ from, found }) => (found === null || found.includes(address) ? [] : [from]));
  const [best = '127.0.0.1'] = addresses.toSorted((one, other) => lackingAt(one).length - lackingAt(other).length);
  return { address: best, lacking: lackingAt(best) };
}
