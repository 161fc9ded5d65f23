/** Which NICs beside the first one of each host lead to the other hosts: a subnet that a firewall or a cable divides carries no data. */
import { UnplannableError } from '../../control/planner/input/check.ts';
import { chooseNics } from '../../control/planner/network/nics.ts';
import type { PlanNic } from '../../control/plan/network.ts';
import { pairsOf, tryAll, type ReachHost, type Tried } from './reach-tries.ts';

interface UnreachedNics {
  /** By host, the addresses of NICs that no plan is to use. */
  readonly unreached: readonly ReadonlySet<string>[];
  /** A sentence for each subnet that is left out. */
  readonly problems: readonly string[];
}

/** `addresses`: by host, the one that it is reached at. */
export async function findUnreachedNics(
  hosts: readonly ReachHost[],
  addresses: readonly string[],
  ports: readonly (number | null)[],
  meeting: number,
): Promise<UnreachedNics> {
  const nics = otherNics(hosts, addresses);
  const unreached = hosts.map(() => new Set<string>());
  const problems: string[] = [];
  const rails = nics[0]?.length ?? 0;
  if (rails === 0) return { unreached, problems };
  const addressesOf = (host: number): string[] => (nics[host] ?? []).map(({ address }) => address);
  // A host that has not said where it listens is nobody's to judge.
  const pairs = pairsOf(hosts.length, meeting).filter(({ to }) => ports[to] !== null);
  const tried = await tryAll(hosts, ports, pairs, ({ from, to }) => ({
    addresses: addressesOf(to),
    sources: addressesOf(from),
    thorough: true,
  }));
  for (let rail = 0; rail < rails; rail++) {
    const nicOf = (host: number): PlanNic | undefined => nics[host]?.[rail];
    const inVain = tried.find((one) => !leads(one, nicOf(one.to)));
    if (inVain === undefined) continue;
    hosts.forEach((_, host) => unreached[host]?.add(nicOf(host)?.address ?? ''));
    problems.push(problemOf(hosts, inVain, nicOf(inVain.from), nicOf(inVain.to)));
  }
  return { unreached, problems };
}

/** By host, what a plan would use beside the NIC that the host is reached at: as many of each. */
function otherNics(hosts: readonly ReachHost[], addresses: readonly string[]): readonly (readonly PlanNic[])[] {
  const reached = hosts.map(({ name, nics }, host) => ({ name, address: addresses[host] ?? '', nics }));
  try {
    return chooseNics(reached).nics.map((its) => its.slice(1));
  } catch (error) {
    if (error instanceof UnplannableError) return [];
    throw error;
  }
}

function leads({ found }: Tried, nic: PlanNic | undefined): boolean {
  return found === null || nic === undefined || found.includes(nic.address);
}

function problemOf(
  hosts: readonly ReachHost[],
  { from, to }: Tried,
  own: PlanNic | undefined,
  other: PlanNic | undefined,
): string {
  return (
    `${hosts[from]?.name} cannot reach ${hosts[to]?.name} from ${own?.name} (${own?.address}) at ${other?.name} (${other?.address}): ` +
    'the job does not use the interfaces of that subnet. See the firewall and the cables between them'
  );
}
