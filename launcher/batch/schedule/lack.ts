/** What a demand lacks on hosts where it does not fit. */
import type { Demand } from '../model/spec.ts';
import { candidatesOf, type Wish } from './candidates.ts';
import { gang, type Candidate } from './gang.ts';
import type { HostRoom } from './host-room.ts';

export type Resource = 'slots' | 'processors' | 'memory' | 'ranks';

export type Lack =
  /** Its numbers contradict each other. */
  | { readonly kind: 'contradiction'; readonly demand: Demand }
  /** Of the hosts, too few are allowed. */
  | { readonly kind: 'hosts'; readonly wanted: number; readonly allowed: number }
  /** It wants hosts for itself; `idle` hosts are. */
  | { readonly kind: 'whole'; readonly hosts: number; readonly idle: number }
  /** On each of its hosts it wants so much; `fitting` hosts have it. */
  | {
      readonly kind: 'each';
      readonly of: Resource;
      readonly wanted: number;
      readonly hosts: number;
      readonly fitting: number;
    }
  /** On all of its hosts together, of which there are `hosts` or, if null, any number. The largest `among` hosts have `found`. */
  | {
      readonly kind: 'sum';
      readonly of: Resource;
      readonly wanted: number;
      readonly hosts: number | null;
      readonly found: number;
      readonly among: number;
    };

/** The first resource that is to blame; null: the demand fits. */
export function lackOf(wish: Wish, rooms: readonly HostRoom[]): Lack | null {
  const { demand, allowed } = wish;
  if (gang(demand, candidatesOf(wish, rooms)) !== null) return null;
  const hosts = hostsWanted(demand);
  if (!Number.isInteger(hosts) || hosts > demand.ranks || (demand.nodes ?? hosts) !== hosts)
    return { kind: 'contradiction', demand };
  if (allowed.length < hosts) return { kind: 'hosts', wanted: hosts, allowed: allowed.length };
  const open = allowed.filter((host) => rooms[host]?.isOpenTo(demand) === true).length;
  if (demand.exclusive && open < hosts) return { kind: 'whole', hosts, idle: open };
  for (const { of, unit } of resourcesOf(demand)) {
    const candidates = allowed.map((host) => ({ host, room: rooms[host]?.ranksBy(of, demand) ?? 0 }));
    if (gang(demand, candidates) === null) return lackIn(demand, candidates, { of, unit });
  }
  return lackIn(demand, candidatesOf(wish, rooms), { of: 'ranks', unit: 1 });
}

/** At least. */
function hostsWanted({ ranks, nodes, ranksPerNode }: Demand): number {
  return ranksPerNode === null ? (nodes ?? 1) : ranks / ranksPerNode;
}

function resourcesOf({ takesSlots, cpusPerRank, memoryBytes }: Demand) {
  return [
    ...(takesSlots ? [{ of: 'slots', unit: 1 } as const] : []),
    ...(cpusPerRank > 0 ? [{ of: 'processors', unit: cpusPerRank } as const] : []),
    ...(memoryBytes > 0 ? [{ of: 'memory', unit: memoryBytes } as const] : []),
  ];
}

interface Measure {
  readonly of: Resource;
  /** How much a rank has of it; of memory, a host. */
  readonly unit: number;
}

function lackIn(demand: Demand, candidates: readonly Candidate[], { of, unit }: Measure): Lack {
  const { ranks, nodes, ranksPerNode } = demand;
  const hosts = hostsWanted(demand);
  if (of === 'memory' || ranksPerNode !== null) {
    const wanted = of === 'memory' ? unit : (ranksPerNode ?? 1) * unit;
    return { kind: 'each', of, wanted, hosts, fitting: withRoom(candidates, ranksPerNode ?? 1) };
  }
  const descending = candidates.map(({ room }) => room).sort((one, other) => other - one);
  const among = Math.min(nodes ?? descending.length, descending.length);
  const found = descending.slice(0, among).reduce((sum, room) => sum + room, 0);
  // With room enough in all, some of the hosts have none.
  if (found >= ranks) return { kind: 'each', of, wanted: unit, hosts, fitting: withRoom(candidates, 1) };
  return { kind: 'sum', of, wanted: ranks * unit, hosts: nodes, found: found * unit, among };
}

function withRoom(candidates: readonly Candidate[], ranks: number): number {
  return candidates.filter(({ room }) => room >= ranks).length;
}
