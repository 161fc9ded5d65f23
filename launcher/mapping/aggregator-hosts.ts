/** On which hosts the aggregators of a job run (--collnet, --collnet-hosts). */
import { MAX_AGGREGATORS } from '../../control/messages/aggregator.ts';
import { allocateHosts } from '../allocation/allocate.ts';
import { thisMachine } from '../allocation/grammar/machine.ts';
import { parseHostList } from '../allocation/grammar/host-list.ts';
import { Reading } from '../allocation/grammar/reading.ts';
import { addUp, hostKey } from '../allocation/slots/add-up.ts';
import { withoutRelatives } from '../allocation/slots/pick.ts';
import { usageError } from '../model/usage-error.ts';
import type { Allocation, HostSlots, JobRequest, RankMap } from '../model/types.ts';

interface AggregatorHost {
  readonly slots: HostSlots;
  /** Aggregators on it, at least one. */
  readonly count: number;
}

/** Null: the job has no aggregators, or the user does not say where they run. Throws a FailureError (hostfile, usage) for hosts that cannot be used. */
export function namedAggregatorHosts(request: JobRequest, { hosts }: Allocation): readonly HostSlots[] | null {
  const hostList = request.aggregators?.hostList ?? null;
  if (hostList === null) return null;
  const { manager, simulated } = request;
  const known = new Map(hosts.map((host) => [hostKey(host, thisMachine), host]));
  const named = manager === null ? listed(hostList) : allocateHosts({ hostfile: null, hostList, manager }).hosts;
  return named.map((one) => {
    const host = known.get(hostKey(one, thisMachine));
    if (host !== undefined) return host;
    if (simulated === null) return one;
    throw usageError(
      `--collnet-hosts ${hostList}: ${one.name} is none of the ${simulated.hosts} hosts that this machine plays`,
      `they are ${hosts[0]?.name} to ${hosts.at(-1)?.name}`,
    );
  });
}

function listed(hostList: string): readonly HostSlots[] {
  const entries = withoutRelatives(parseHostList(hostList, thisMachine, new Reading(), '--collnet-hosts'));
  return addUp(entries, thisMachine).hosts;
}

/** Hosts without ranks that are asked for the sake of their aggregators. `map` null: it follows from what all hosts of the allocation answer. */
export function helpingHosts(
  request: JobRequest,
  allocation: Allocation,
  named: readonly HostSlots[] | null,
  map: RankMap | null,
): readonly HostSlots[] {
  const asked = new Set((map ?? allocation).hosts.map(({ name }) => name));
  const wanted =
    map === null ? (named ?? []) : aggregatorHosts(request, allocation, named, map).map(({ slots }) => slots);
  return wanted.filter(({ name }) => !asked.has(name));
}

/**
 * None where the ranks are on one host, or where nobody asks for them. The hosts are those that the user names, else those without ranks, which
 * have their links to themselves, else all.
 */
export function aggregatorHosts(
  { aggregators }: JobRequest,
  { hosts }: Allocation,
  named: readonly HostSlots[] | null,
  map: RankMap,
): readonly AggregatorHost[] {
  if (aggregators === null || map.hosts.length === 1) return [];
  const used = new Set(map.hosts.map(({ name }) => name));
  const free = hosts.filter(({ name }) => !used.has(name));
  // More of them than hosts that send would only be more connections.
  const most = aggregators.count ?? map.hosts.length;
  const chosen = named ?? (free.length > 0 ? free : map.hosts).slice(0, most);
  const all = Math.min(aggregators.count ?? chosen.length, MAX_AGGREGATORS);
  return chosen.slice(0, all).map((slots, index) => ({
    slots,
    count: Math.floor(all / chosen.length) + (index < all % chosen.length ? 1 : 0),
  }));
}
