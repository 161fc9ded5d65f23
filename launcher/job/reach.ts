/**
 * By which address each host of a job is reached from the others. Where hosts have several, they try each other: each its successor, and all that of
 * rank 0, where programs meet. One that leads to another host, or is behind a firewall, is passed over.
 */
import { limitOf, type ReachAnswer, type ReachQuestion, type ReachTarget } from '../../control/messages/reach.ts';

/** Beside the time that its tries may take. A host that answers no sooner is not waited for. */
const GRACE_MS = 700;

export interface ReachHost {
  readonly name: string;
  /** Where it may be reached, best first; at least one. */
  readonly addresses: readonly string[];
  /** Null: it did not answer. */
  ask(question: ReachQuestion): Promise<ReachAnswer | null>;
}

interface Reached {
  /** By host. */
  readonly addresses: readonly string[];
  /** A sentence for each host that others could not reach. */
  readonly problems: readonly string[];
}

/** `meeting`: index of rank 0's host. Hosts with one address each are asked nothing. */
export async function reachEachOther(hosts: readonly ReachHost[], meeting: number): Promise<Reached> {
  const first = { addresses: hosts.map(({ addresses }) => addresses[0] ?? '127.0.0.1'), problems: [] };
  if (hosts.length < 2 || hosts.every(({ addresses }) => addresses.length < 2)) return first;
  const ports = await Promise.all(hosts.map((host) => portOf(host)));
  const quick = await tryAll(hosts, ports, pairsOf(hosts.length, meeting), false);
  const settled = hosts.map((_, index) => common(hosts, index, quick));
  const open = new Set(hosts.flatMap((_, index) => (settled[index] === null ? [index] : [])));
  if (open.size === 0) return { addresses: hosts.map((_, index) => settled[index] ?? ''), problems: [] };
  const again = pairsOf(hosts.length, meeting).filter(({ to }) => open.has(to) && ports[to] !== null);
  const thorough = await tryAll(hosts, ports, again, true);
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

interface Pair {
  readonly from: number;
  readonly to: number;
}

interface Tried extends Pair {
  /** Addresses of `to` that lead to it; null: `from` did not say. */
  readonly found: readonly string[] | null;
}

function pairsOf(count: number, meeting: number): Pair[] {
  const successors = Array.from({ length: count }, (_, from) => ({ from, to: (from + 1) % count }));
  return [
    ...successors,
    ...successors.flatMap(({ from, to }) => (from === meeting || to === meeting ? [] : [{ from, to: meeting }])),
  ];
}

async function portOf(host: ReachHost): Promise<number | null> {
  const answer = await inTime(host.ask({ type: 'listen' }), limitOf(false));
  return answer?.type === 'listening' ? answer.port : null;
}

/** Each host is asked once, of all that it is to try. */
async function tryAll(
  hosts: readonly ReachHost[],
  ports: readonly (number | null)[],
  pairs: readonly Pair[],
  thorough: boolean,
): Promise<Tried[]> {
  const byHost = Map.groupBy(pairs, ({ from }) => from);
  const asked = Array.from(byHost, async ([from, its]): Promise<Tried[]> => {
    const targets = its.map(({ to }): ReachTarget => {
      const { name = '', addresses = [] } = hosts[to] ?? {};
      return { host: name, addresses, port: ports[to] ?? 0, thorough };
    });
    // Who has not said where it listens is not asked again.
    const answer =
      ports[from] === null
        ? null
        : await inTime(hosts[from]?.ask({ type: 'probe', targets }) ?? null, limitOf(thorough));
    const found = answer?.type === 'reached' ? answer.found : [];
    return its.map((pair, index) => ({ ...pair, found: found[index] ?? null }));
  });
  return (await Promise.all(asked)).flat();
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

/** Null: it took longer than `limitMs` and some more. */
async function inTime<T>(answer: Promise<T | null> | null, limitMs: number): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), limitMs + GRACE_MS);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}
