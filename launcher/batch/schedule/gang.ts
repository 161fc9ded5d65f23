/**
 * Which hosts a demand gets, and how many of its ranks each: all of them or none. It takes the fewest hosts; among as many it takes
 * those that come first in the order of preference. Whenever any choice of hosts fits, one is found.
 */
import type { Demand } from '../model/spec.ts';

/** Ranks on one host, by the host's index. */
export interface Part {
  readonly host: number;
  readonly ranks: number;
}

/** A host by its index, with the number of ranks that fit there. */
export interface Candidate {
  readonly host: number;
  readonly room: number;
}

/** `candidates` in the order of preference. The parts are in the order of the hosts. */
export function gang(demand: Demand, candidates: readonly Candidate[]): Part[] | null {
  const chosen = hostsFor(demand, candidates)?.toSorted((one, other) => one.host - other.host) ?? null;
  if (chosen === null) return null;
  const { ranks, nodes, ranksPerNode } = demand;
  if (ranksPerNode !== null) return chosen.map(({ host }) => ({ host, ranks: ranksPerNode }));
  return nodes === null ? filled(ranks, chosen) : even(ranks, chosen);
}

function hostsFor(demand: Demand, candidates: readonly Candidate[]): readonly Candidate[] | null {
  const { ranks, nodes, ranksPerNode } = demand;
  if (ranksPerNode === null) {
    const usable = candidates.filter(({ room }) => room > 0);
    const count = nodes ?? fewest(ranks, usable);
    return count === null || count > ranks ? null : firstWithRoom(ranks, count, usable);
  }
  const count = ranks / ranksPerNode;
  if (!Number.isInteger(count) || (nodes !== null && nodes !== count)) return null;
  const usable = candidates.filter(({ room }) => room >= ranksPerNode);
  return usable.length < count ? null : usable.slice(0, count);
}

/** How many hosts are needed at least; null: all of them are too few. */
function fewest(ranks: number, usable: readonly Candidate[]): number | null {
  if (usable.some(({ room }) => room >= ranks)) return 1;
  let sum = 0;
  for (const [index, room] of roomsDescending(usable).entries()) {
    sum += room;
    if (sum >= ranks) return index + 1;
  }
  return null;
}

/** The first `count` hosts by preference among those sets of so many that have room for all ranks. */
function firstWithRoom(ranks: number, count: number, usable: readonly Candidate[]): Candidate[] | null {
  const later = roomsDescending(usable);
  const chosen: Candidate[] = [];
  let missing = ranks;
  for (const candidate of usable) {
    if (chosen.length === count) break;
    later.splice(later.indexOf(candidate.room), 1);
    // It is good if the roomiest of the later hosts have room for what it leaves.
    if (later.length < count - chosen.length - 1) return null;
    const rest = sumOfFirst(later, count - chosen.length - 1);
    if (candidate.room + rest < missing) continue;
    chosen.push(candidate);
    missing -= candidate.room;
  }
  return chosen.length === count ? chosen : null;
}

function roomsDescending(candidates: readonly Candidate[]): number[] {
  return candidates.map(({ room }) => room).sort((one, other) => other - one);
}

function sumOfFirst(numbers: readonly number[], count: number): number {
  let sum = 0;
  for (let index = 0; index < count; index++) sum += numbers[index] ?? 0;
  return sum;
}

/** One host after another is filled. */
function filled(ranks: number, chosen: readonly Candidate[]): Part[] {
  let missing = ranks;
  return chosen.map(({ host, room }) => {
    const part = { host, ranks: Math.min(room, missing) };
    missing -= part.ranks;
    return part;
  });
}

/** As many ranks on each host as on the others, as far as there is room; what does not divide goes to the first. */
function even(ranks: number, chosen: readonly Candidate[]): Part[] {
  const byHost = new Map<number, number>();
  let missing = ranks;
  // Hosts with little room first: the others share what those cannot take.
  const ascending = chosen.toSorted((one, other) => one.room - other.room || other.host - one.host);
  for (const [index, { host, room }] of ascending.entries()) {
    const share = Math.min(room, Math.floor(missing / (chosen.length - index)));
    byHost.set(host, share);
    missing -= share;
  }
  return chosen.map(({ host }) => ({ host, ranks: byHost.get(host) ?? 0 }));
}
