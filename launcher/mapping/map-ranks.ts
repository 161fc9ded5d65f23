/** Allocation and wishes → which rank runs where. Pure: the same input gives the same map. */
import type { HostTopology } from '../../control/messages/topology.ts';
import type { Allocation, HostSlots, JobRequest, MapBy, MappedRank, ProgramRequest, RankMap } from '../model/types.ts';
import { dealToHosts } from './deal.ts';
import { objectsOf, perHostOf } from './objects.ts';
import type { HostsOfProgram } from './program-hosts.ts';
import { order } from './rank-by.ts';
import { dealSequence } from './sequence.ts';

export interface MappingRequest extends Pick<JobRequest, 'oversubscribe' | 'mapBy' | 'rankBy'> {
  readonly programs: readonly Pick<ProgramRequest, 'argv' | 'ranks' | 'ranksPerHost'>[];
}

/** What hosts have, by name, as far as it is known. */
export type Topologies = ReadonlyMap<string, HostTopology>;

/** Where a rank is put before it has its number. */
export interface RankPlacement {
  /** Indexes the allocation's hosts. */
  readonly host: number;
  readonly numa: number | null;
  readonly gpu: number | null;
}

/** Whether hosts must say what they have before ranks can be dealt to it. */
export function dealsToObjects({ programs, mapBy }: Pick<MappingRequest, 'programs' | 'mapBy'>): boolean {
  const object = mapBy.by === 'ppr' ? mapBy.object : mapBy.by;
  return object === 'numa' || object === 'gpu' || programs.some((program) => program.ranksPerHost === 'gpu');
}

/**
 * Ranks fill a host's slots, then the next host's, or as --map-by says; with ranksPerHost (-N) each host gets that many. Without a
 * number of ranks every slot gets one. Programs follow each other into the slots that are left; ranks go on counting.
 * `hostsOf`: for each program the hosts that it may use.
 * null: that depends on what nobody stated; ask the hosts (withDetectedSlots, topologies) and call again.
 * Throws a FailureError (allocation) where more ranks are asked for than the slots allow.
 */
export function mapRanks(
  { hosts }: Allocation,
  request: MappingRequest,
  topologies: Topologies | null = null,
  hostsOf: readonly HostsOfProgram[] = [],
): RankMap | null {
  if (dealsToObjects(request) && (topologies === null || hosts.some((host) => !topologies.has(host.name)))) return null;
  const taken = hosts.map(() => 0);
  const placed: (RankPlacement & { readonly program: number })[] = [];
  for (const [program, wish] of request.programs.entries()) {
    const only = hostsOf[program]?.(taken) ?? null;
    const may = hosts.map((_, host) => only === null || only.has(host));
    const its = hosts.map((host, index) => atMost(host, only?.get(index) ?? null, taken[index] ?? 0));
    const placements = placeProgram({ hosts: its, may, wish, request, topologies: topologies ?? new Map(), taken });
    if (placements === null) return null;
    for (const placement of order(placements, request.rankBy)) placed.push({ ...placement, program });
    for (const { host } of placements) taken[host] = (taken[host] ?? 0) + 1;
  }
  return number(hosts, placed, taken);
}

/** The host with no more slots than a program's -H states, beside those that are taken; null: with all that it has. */
function atMost(host: HostSlots, slots: number | null, taken: number): HostSlots {
  if (slots === null) return host;
  const max = host.origin.kind === 'stated' ? (host.slots ?? Infinity) : Infinity;
  return { ...host, slots: Math.min(max, taken + slots), origin: { ...host.origin, kind: 'stated' } };
}

export interface Program {
  readonly hosts: readonly HostSlots[];
  /** Whether the program may use the host, by host. */
  readonly may: readonly boolean[];
  readonly wish: MappingRequest['programs'][number];
  readonly request: MappingRequest;
  readonly topologies: Topologies;
  /** Ranks of earlier programs, by host. */
  readonly taken: readonly number[];
}

/** In the order in which they are dealt. */
function placeProgram(program: Program): RankPlacement[] | null {
  const { mapBy } = program.request;
  const dealt = mapBy.by === 'seq' ? dealSequence(program) : dealToHosts(program, perHostOf(program));
  if (dealt === null) return null;
  const next = [...program.taken];
  const first = program.taken;
  return dealt.map((host) => {
    const index = next[host] ?? 0;
    next[host] = index + 1;
    return { host, ...objectsOf(program, host, startOf(mapBy, index, first[host] ?? 0)) };
  });
}

/** ppr counts each program's ranks anew; the others go on where the program before stopped. */
function startOf(mapBy: MapBy, index: number, taken: number): number {
  return mapBy.by === 'ppr' ? index - taken : index;
}

/** Numbers the ranks; hosts without ranks drop out. */
function number(
  hosts: readonly HostSlots[],
  placed: readonly (RankPlacement & { readonly program: number })[],
  counts: readonly number[],
): RankMap {
  const used: HostSlots[] = [];
  const usedIndex = hosts.map((host, index) => ((counts[index] ?? 0) === 0 ? -1 : used.push(host) - 1));
  const next = hosts.map(() => 0);
  const ranks = placed.map((placement, rank): MappedRank => {
    const localRank = next[placement.host] ?? 0;
    next[placement.host] = localRank + 1;
    const { program, numa, gpu } = placement;
    const localSize = counts[placement.host] ?? 0;
    return { rank, host: usedIndex[placement.host] ?? -1, program, localRank, localSize, numa, gpu };
  });
  return { hosts: used, ranks };
}
