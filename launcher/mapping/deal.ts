/** How many ranks of a program go to which host, and in which order they are dealt. */
import type { HostSlots } from '../model/types.ts';
import type { Program } from './map-ranks.ts';
import { gpusOf } from './objects.ts';
import { counted } from '../text/counted.ts';
import { programName, refuse, slotTable } from './refusal.ts';

/**
 * A host (as index) for each rank, in the order dealt. `perHost`: ranks that each host is to get, null where its slots decide. null:
 * slots that nobody stated decide.
 */
export function dealToHosts(program: Program, perHost: readonly number[] | null): number[] | null {
  const rooms = perHost === null ? roomsBySlot(program) : roomsPerHost(program, perHost);
  if (rooms === null) return null;
  const { ranks } = program.wish;
  const wanted = ranks ?? rooms.reduce((sum, room) => sum + room, 0);
  if (wanted === 0) throw refuseNothingLeft(program);
  const dealt =
    program.request.mapBy.by === 'node' ? dealRoundRobin(program, rooms, wanted) : fill(program, rooms, wanted);
  if (perHost !== null) checkLimits(program, dealt);
  return dealt;
}

function dealRoundRobin(program: Program, rooms: readonly number[], wanted: number): number[] {
  const dealt = roundRobin(rooms, wanted);
  return dealt.length === wanted ? dealt : [...dealt, ...surplus(program, rooms, wanted)];
}

function fill(program: Program, rooms: readonly number[], wanted: number): number[] {
  let left = wanted;
  const counts = rooms.map((room) => {
    const count = Math.min(room, left);
    left -= count;
    return count;
  });
  for (const host of left === 0 ? [] : surplus(program, counts, wanted)) counts[host] = (counts[host] ?? 0) + 1;
  return counts.flatMap((count, host) => Array.from({ length: count }, () => host));
}

/** Ranks per host where each gets so many. Refused where that is less than -n asks for. */
function roomsPerHost({ may, wish }: Program, perHost: readonly number[]): readonly number[] {
  const sum = perHost.reduce((total, count) => total + count, 0);
  const { ranks } = wish;
  if (ranks !== null && ranks > sum) {
    const users = may.filter(Boolean).length;
    const each = typeof wish.ranksPerHost === 'number' ? `-N ${wish.ranksPerHost}` : 'what each host gets';
    const message = `${ranks} ranks asked for, but ${each} on ${counted(users, 'host')} makes ${sum}`;
    const more = `raise -N to ${Math.ceil(ranks / users)}, or leave -n out`;
    const remedy =
      typeof wish.ranksPerHost === 'number'
        ? `name ${counted(Math.ceil(ranks / wish.ranksPerHost), 'host')}, ${more} (srun's -N is --nodes here)`
        : `name more hosts, ${more}`;
    throw refuse(message, remedy);
  }
  return perHost;
}

function checkLimits({ hosts, request, taken }: Program, dealt: readonly number[]): void {
  const counts = [...taken];
  for (const host of dealt) counts[host] = (counts[host] ?? 0) + 1;
  for (const [index, host] of hosts.entries()) {
    const count = counts[index] ?? 0;
    const refused = count > (taken[index] ?? 0) && count > limitOf(host, request.oversubscribe);
    if (refused) throw refuseOnHost(host, count, request.oversubscribe);
  }
}

function roomsBySlot(program: Program): number[] | null {
  const { hosts, may, wish, request, taken } = program;
  const fills = request.mapBy.by !== 'node';
  const last = may.lastIndexOf(true);
  const rooms = hosts.map(() => 0);
  let left = wish.ranks ?? Number.POSITIVE_INFINITY;
  for (const [index, host] of hosts.entries()) {
    if (left === 0 && fills) return rooms;
    if (may[index] !== true) continue;
    const rest = fills ? left : (wish.ranks ?? left);
    const room = roomOf(program, index, host, index === last ? rest : null);
    if (room === null) return null;
    rooms[index] = Math.max(0, room - (taken[index] ?? 0));
    left -= Math.min(left, rooms[index] ?? 0);
  }
  return rooms;
}

/** Slots, of which --map-by gpu uses no more than there are GPUs. `rest`: what a last host without a limit may take. */
function roomOf(program: Program, index: number, host: HostSlots, rest: number | null): number | null {
  if (program.request.mapBy.by === 'gpu') {
    const gpus = gpusOf(program, index);
    return isUnlimited(host) ? gpus : Math.min(host.slots ?? gpus, gpus);
  }
  const takesTheRest = rest !== null && Number.isFinite(rest) && isUnlimited(host);
  return takesTheRest ? rest + (program.taken[index] ?? 0) : host.slots;
}

/** One rank for each host that has room, again and again. */
function roundRobin(rooms: readonly number[], wanted: number): number[] {
  const dealt: number[] = [];
  const left = [...rooms];
  let open = left.flatMap((room, host) => (room > 0 ? [host] : []));
  while (open.length > 0 && dealt.length < wanted) {
    for (const host of open) {
      if (dealt.length === wanted) return dealt;
      dealt.push(host);
      left[host] = (left[host] ?? 0) - 1;
    }
    open = open.filter((host) => (left[host] ?? 0) > 0);
  }
  return dealt;
}

/** Beyond the slots: to the hosts without a limit, or with --oversubscribe to all, one rank each in turn. */
function surplus(program: Program, dealt: readonly number[], wanted: number): number[] {
  const { hosts, may, request, taken } = program;
  const limits = hosts.map((host, index) => {
    if (may[index] !== true) return 0;
    const limit = request.mapBy.by === 'gpu' && !request.oversubscribe ? gpusOf(program, index) : Infinity;
    const free = Math.min(limit, limitOf(host, request.oversubscribe)) - (taken[index] ?? 0);
    return Math.max(0, free - (dealt[index] ?? 0));
  });
  const missing = wanted - dealt.reduce((sum, count) => sum + count, 0);
  const more = roundRobin(limits, missing);
  if (more.length < missing) throw refuseInAll(program, wanted);
  return more;
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
  const message = `${counted(count, 'rank')} on ${host.name} asked for, but it has ${kind}=${limit} (${host.origin.text})`;
  const remedy = oversubscribe ? '' : ', or put more ranks than slots on it with --oversubscribe';
  return refuse(message, `ask for at most ${limit} per host, raise ${kind}${remedy}`);
}

function refuseInAll(program: Program, ranks: number): Error {
  const { may, taken } = program;
  const { oversubscribe, mapBy } = program.request;
  const hosts = program.hosts.filter((_, index) => may[index] === true);
  const before = taken.reduce((sum, count, index) => sum + (may[index] === true ? count : 0), 0);
  const whose = before === 0 ? '' : `${programName(program)}: `;
  const beside = before === 0 ? '' : ` beside the ${before} of the programs before it`;
  if (mapBy.by === 'gpu' && !oversubscribe) {
    const gpus = may.reduce((sum, usable, index) => sum + (usable ? gpusOf(program, index) : 0), 0);
    const message = `${whose}${counted(ranks, 'rank')} asked for${beside}, but --map-by gpu gives each a GPU and there are ${gpus}`;
    return refuse(message, 'ask for fewer ranks, or let them share GPUs with --oversubscribe');
  }
  const sum = hosts.reduce((total, host) => total + limitOf(host, oversubscribe), 0);
  const kind = oversubscribe ? 'max_slots' : 'slots';
  const message = `${whose}${counted(ranks, 'rank')} asked for${beside}, but there are ${sum} ${kind} (${slotTable(hosts, oversubscribe)})`;
  const remedy = oversubscribe ? '' : ', or put more ranks than slots on the hosts with --oversubscribe';
  return refuse(message, `ask for at most -n ${Math.max(0, sum - before)}, state more ${kind}${remedy}`);
}

function refuseNothingLeft(program: Program): Error {
  if (program.request.mapBy.by === 'gpu') {
    return refuse(
      '--map-by gpu, but no host of the job has a GPU that is free',
      'leave it out, or name hosts with GPUs',
    );
  }
  const message = `no slot is left for ${programName(program)}: the programs before it take them all`;
  return refuse(message, 'say with -n how many ranks each program gets');
}
