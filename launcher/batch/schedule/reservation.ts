/**
 * The earliest time at which a demand fits for certain: when running tasks have reached their time limits and hosts are no longer
 * held out. What the demand needs then is kept for it.
 *
 * Where no such time is known, since tasks without a time limit are in the way, it still keeps hosts, and always the same ones: no
 * further task without a time limit gets what it needs of them. So one day they are free, or only tasks with time limits are left.
 */
import type { Placement } from '../model/capacity.ts';
import type { Demand } from '../model/spec.ts';
import { candidatesOf, partsIn, type Wish } from './candidates.ts';
import { gang, type Part } from './gang.ts';
import { useOfRanks, useOfShare, type HostRoom } from './host-room.ts';

/** Something that ends and leaves room. */
export interface Release {
  readonly at: number;
  readonly free: (rooms: readonly HostRoom[]) => void;
}

export class Reservation {
  /** In milliseconds; Infinity: not known. */
  readonly at: number;
  readonly parts: readonly Part[];
  readonly #hosts: ReadonlySet<number>;
  /** What is free at that time beside what is reserved. */
  readonly #rooms: readonly HostRoom[];

  constructor(at: number, { demand }: Wish, parts: readonly Part[], rooms: readonly HostRoom[]) {
    this.at = at;
    this.parts = parts;
    this.#hosts = new Set(parts.map(({ host }) => host));
    this.#rooms = rooms;
    this.take(demand, parts);
  }

  /** Whether a task that starts now is surely over in time. */
  isAfter(end: number): boolean {
    return Number.isFinite(end) && end <= this.at;
  }

  /** Where a demand fits now. One that runs into the reserved time gets only what is free then too. */
  partsFor(wish: Wish, rooms: readonly HostRoom[], end: number): Part[] | null {
    let candidates = candidatesOf(wish, rooms);
    if (!this.isAfter(end))
      candidates = candidates.map(({ host, room }) => ({
        host,
        room: Math.min(room, this.#rooms[host]?.ranksFor(wish.demand) ?? 0),
      }));
    const [others, reserved] = [false, true].map((isReserved) =>
      candidates.filter(({ host }) => this.#hosts.has(host) === isReserved),
    );
    return gang(wish.demand, [...(others ?? []), ...(reserved ?? [])]);
  }

  /** Counts a task that runs into the reserved time. */
  take(demand: Demand, parts: readonly Part[]): void {
    for (const { host, ranks } of parts) this.#rooms[host]?.take(useOfRanks(demand, ranks));
  }
}

/** The state that a reservation is made from. */
interface Outlook {
  readonly rooms: readonly HostRoom[];
  /** Ascending by their times, all of which are known. */
  readonly releases: readonly Release[];
  /** Of the running tasks without time limits. */
  readonly endless: readonly Placement[];
  /** Rooms of hosts on which nothing runs; only those are held out that stay so. */
  readonly emptyRooms: () => HostRoom[];
  readonly indexOf: (host: string) => number | undefined;
}

/** Null: the demand does not fit hosts on which nothing runs. */
export function reserve(wish: Wish, outlook: Outlook): Reservation | null {
  const { releases } = outlook;
  let [low, high] = [0, releases.length];
  let rooms = copied(outlook.rooms); // as they are after `low` releases, which are too few
  let found: { readonly rooms: HostRoom[]; readonly parts: Part[] } | null = null;
  while (low < high) {
    const middle = (low + high) >> 1;
    const later = copied(rooms);
    for (const release of releases.slice(low, middle + 1)) release.free(later);
    const parts = partsIn(wish, later);
    if (parts === null) [low, rooms] = [middle + 1, later];
    else [high, found] = [middle, { rooms: later, parts }];
  }
  const at = releases[high]?.at;
  if (found === null || at === undefined) return reserveWithoutTime(wish, outlook);
  for (const release of releases.slice(high + 1)) if (release.at === at) release.free(found.rooms);
  return new Reservation(at, wish, partsIn(wish, found.rooms) ?? found.parts, found.rooms);
}

function reserveWithoutTime(wish: Wish, { emptyRooms, endless, indexOf }: Outlook): Reservation | null {
  const rooms = emptyRooms();
  const parts = partsIn(wish, rooms);
  if (parts === null) return null;
  for (const share of endless.flat()) rooms[indexOf(share.host) ?? -1]?.take(useOfShare(share));
  return new Reservation(Infinity, wish, parts, rooms);
}

function copied(rooms: readonly HostRoom[]): HostRoom[] {
  return rooms.map((room) => room.copy());
}
