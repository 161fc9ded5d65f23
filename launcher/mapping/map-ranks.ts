/** Allocation and wishes → which rank runs where. Pure: the same input gives the same map. */
import type { Allocation, HostSlots, JobRequest, MappedRank, ProgramRequest, RankMap } from '../job/types.ts';
import { refuse, slotTable } from './refusal.ts';

export interface MappingRequest extends Pick<JobRequest, 'oversubscribe'> {
  readonly programs: readonly Pick<ProgramRequest, 'ranks' | 'ranksPerHost'>[];
}

interface ProgramWish extends Pick<JobRequest, 'oversubscribe'> {
  readonly ranks: number | null;
}

/**
 * Ranks fill a host's slots, then the next host's; with ranksPerHost (-N) each host gets that many. Without a number of ranks every
 * slot gets one. null: that depends on slots that nobody stated; ask the hosts (withDetectedSlots) and call again.
 * Throws a FailureError (allocation) where more ranks are asked for than the slots allow.
 */
export function mapRanks(allocation: Allocation, request: MappingRequest): RankMap | null {
  const { ranks, ranksPerHost } = request.programs[0] ?? { ranks: null, ranksPerHost: null };
  const wish = { ranks, oversubscribe: request.oversubscribe };
  const perHost = ranksPerHost === 'gpu' ? null : ranksPerHost;
  const counts =
    perHost === null ? countsBySlot(allocation.hosts, wish) : countsPerHost(allocation.hosts, wish, perHost);
  return counts === null ? null : number(allocation.hosts, counts);
}

function countsPerHost(hosts: readonly HostSlots[], request: ProgramWish, perHost: number): number[] {
  const ranks = request.ranks ?? perHost * hosts.length;
  if (ranks > perHost * hosts.length) {
    const message = `${ranks} ranks asked for, but -N ${perHost} on ${plural(hosts.length, 'host')} makes ${perHost * hosts.length}`;
    throw refuse(message, `raise -N to ${Math.ceil(ranks / hosts.length)}, name more hosts, or leave -n out`);
  }
  let left = ranks;
  return hosts.map((host) => {
    const count = Math.min(left, perHost);
    left -= count;
    if (count > limitOf(host, request.oversubscribe)) throw refuseOnHost(host, count, request.oversubscribe);
    return count;
  });
}

function countsBySlot(hosts: readonly HostSlots[], request: ProgramWish): number[] | null {
  const counts = hosts.map(() => 0);
  let left = request.ranks ?? Number.POSITIVE_INFINITY;
  for (const [index, host] of hosts.entries()) {
    if (left === 0) return counts;
    const takesTheRest = isUnlimited(host) && index === hosts.length - 1 && Number.isFinite(left);
    const room = takesTheRest ? left : host.slots;
    if (room === null) return null;
    counts[index] = Math.min(left, room);
    left -= Math.min(left, room);
  }
  if (request.ranks !== null && left > 0) dealSurplus(hosts, counts, left, request.ranks, request.oversubscribe);
  return counts;
}

/** Beyond the slots: to the hosts without a limit, or with --oversubscribe to all, one rank each in turn. */
function dealSurplus(
  hosts: readonly HostSlots[],
  counts: number[],
  surplus: number,
  ranks: number,
  oversubscribe: boolean,
): void {
  let left = surplus;
  while (left > 0) {
    let dealt = 0;
    for (const [index, host] of hosts.entries()) {
      const count = counts[index] ?? 0;
      if (dealt === left || count >= limitOf(host, oversubscribe)) continue;
      counts[index] = count + 1;
      dealt += 1;
    }
    if (dealt === 0) throw refuseInAll(hosts, ranks, oversubscribe);
    left -= dealt;
  }
}

function isUnlimited(host: HostSlots): boolean {
  return host.origin.kind === 'localhost-unlimited';
}

function limitOf(host: HostSlots, oversubscribe: boolean): number {
  if (isUnlimited(host)) return Number.POSITIVE_INFINITY;
  return (oversubscribe ? host.maxSlots : host.slots) ?? Number.POSITIVE_INFINITY;
}

function refuseOnHost(host: HostSlots, count: number, oversubscribe: boolean): Error {
  const limit = limitOf(host, oversubscribe);
  const kind = oversubscribe ? 'max_slots' : 'slots';
  const message = `${plural(count, 'rank')} on ${host.name} asked for, but it has ${kind}=${limit} (${host.origin.text})`;
  const wayOut = oversubscribe ? '' : ', or put more ranks than slots on it with --oversubscribe';
  return refuse(message, `ask for at most ${limit} per host, raise ${kind}${wayOut}`);
}

function refuseInAll(hosts: readonly HostSlots[], ranks: number, oversubscribe: boolean): Error {
  const sum = hosts.reduce((total, host) => total + limitOf(host, oversubscribe), 0);
  const kind = oversubscribe ? 'max_slots' : 'slots';
  const message = `${plural(ranks, 'rank')} asked for, but there are ${sum} ${kind} (${slotTable(hosts, oversubscribe)})`;
  const wayOut = oversubscribe ? '' : ', or put more ranks than slots on the hosts with --oversubscribe';
  return refuse(message, `ask for at most -n ${sum}, state more ${kind}${wayOut}`);
}

function plural(count: number, noun: string): string {
  return count === 1 ? `1 ${noun}` : `${count} ${noun}s`;
}

/** Numbers the ranks host by host; hosts without ranks drop out. */
function number(hosts: readonly HostSlots[], counts: readonly number[]): RankMap {
  const used: HostSlots[] = [];
  const ranks: MappedRank[] = [];
  for (const [index, host] of hosts.entries()) {
    const localSize = counts[index] ?? 0;
    if (localSize === 0) continue;
    for (let localRank = 0; localRank < localSize; localRank += 1) {
      ranks.push({ rank: ranks.length, host: used.length, program: 0, localRank, localSize });
    }
    used.push(host);
  }
  return { hosts: used, ranks };
}
