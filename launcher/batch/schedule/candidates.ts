/** A demand together with the hosts that it may use. */
import type { Demand } from '../model/spec.ts';
import { gang, type Candidate, type Part } from './gang.ts';
import type { HostRoom } from './host-room.ts';

export interface Wish {
  readonly demand: Demand;
  /** Indexes of the hosts that it allows, ascending. */
  readonly allowed: readonly number[];
}

export function wishOf(demand: Demand, names: readonly string[]): Wish {
  const named = demand.hosts === null ? null : new Set(demand.hosts);
  const excluded = new Set(demand.exclude);
  const allowed = names.flatMap((name, index) => (named?.has(name) === false || excluded.has(name) ? [] : [index]));
  return { demand, allowed };
}

/** Hosts with their room for ranks. */
export function candidatesOf({ demand, allowed }: Wish, rooms: readonly HostRoom[]): Candidate[] {
  return allowed.map((host) => ({ host, room: rooms[host]?.ranksFor(demand) ?? 0 }));
}

/** Where it fits, without preference for any host. */
export function partsIn(wish: Wish, rooms: readonly HostRoom[]): Part[] | null {
  return gang(wish.demand, candidatesOf(wish, rooms));
}
