/** Why a task waits. */
import { candidatesOf, type Wish } from './candidates.ts';
import { gang } from './gang.ts';
import type { HostRoom } from './host-room.ts';
import { lackOf, type Lack } from './lack.ts';
import type { Occupation } from './occupation.ts';
import type { Reservation } from './reservation.ts';
import type { Entry } from './waiting.ts';

/** The first task that does not fit now, and what is kept for it. */
export interface Head {
  readonly id: string;
  readonly reservation: Reservation;
}

export type WaitReason =
  /** It starts when the queue is looked at next. */
  | { readonly kind: 'ready' }
  | { readonly kind: 'never-fits'; readonly lack: Lack }
  /** It would fit if these hosts were not held out; null: until somebody releases them. */
  | { readonly kind: 'hosts-held'; readonly hosts: readonly string[]; readonly until: number | null }
  /** It has the reservation. */
  | {
      readonly kind: 'first';
      readonly lack: Lack;
      readonly room: FreeSlots;
      /** null: not known, since tasks without a time limit are in the way. */
      readonly startBy: number | null;
      readonly endless: readonly string[];
    }
  | { readonly kind: 'full'; readonly lack: Lack; readonly room: FreeSlots }
  /** It would fit, but takes what is kept for another task. */
  | {
      readonly kind: 'behind';
      readonly task: string;
      /** null: not known. */
      readonly startBy: number | null;
      /** A time limit of at most so much would let it start now; null: none would. */
      readonly sufficientLimitSeconds: number | null;
    };

/** Of the hosts that the task allows. */
export interface FreeSlots {
  readonly free: number;
  readonly total: number;
}

interface Situation {
  readonly now: number;
  readonly hosts: Occupation;
  readonly head: Head | null;
}

export function whyWaiting({ task, group: { wish, limit } }: Entry, { now, hosts, head }: Situation): WaitReason {
  const never = hosts.canFit(wish) ? null : lackOf(wish, hosts.emptyRooms('all'));
  if (never !== null) return { kind: 'never-fits', lack: never };
  const lack = lackOf(wish, hosts.rooms);
  if (lack === null) {
    if (head === null || head.reservation.partsFor(wish, hosts.rooms, now + limit) !== null) return { kind: 'ready' };
    return behind(head, now);
  }
  const held = heldInTheWay(wish, hosts);
  if (held !== null) return held;
  const room = freeSlots(wish, hosts);
  if (head?.id !== task.id) return { kind: 'full', lack, room };
  const { at } = head.reservation;
  const allowed = new Set(wish.allowed.map((index) => hosts.hosts[index]?.name));
  const endless = hosts.endless().filter(({ placement }) => placement.some(({ host }) => allowed.has(host)));
  return { kind: 'first', lack, room, startBy: finite(at), endless: endless.map(({ id }) => id) };
}

function behind({ id, reservation }: Head, now: number): WaitReason {
  const startBy = finite(reservation.at);
  const seconds = startBy === null ? 0 : Math.floor((startBy - now) / 1000);
  return { kind: 'behind', task: id, startBy, sufficientLimitSeconds: seconds > 0 ? seconds : null };
}

/** Held hosts with which it would fit; null: they do not matter. */
function heldInTheWay(wish: Wish, hosts: Occupation): WaitReason | null {
  const held = new Map(hosts.held);
  if (held.size === 0) return null;
  const rooms = opened(hosts.canFit(wish) ? hosts.rooms : hosts.emptyRooms('all'));
  const isHeld = (index: number): boolean => held.has(hosts.hosts[index]?.name ?? '');
  const candidates = candidatesOf(wish, rooms);
  const inOrder = [...candidates.filter(({ host }) => !isHeld(host)), ...candidates.filter(({ host }) => isHeld(host))];
  const names = gang(wish.demand, inOrder)?.flatMap(({ host }) =>
    isHeld(host) ? [hosts.hosts[host]?.name ?? ''] : [],
  );
  if (names === undefined) return null;
  return { kind: 'hosts-held', hosts: names, until: finite(Math.max(...names.map((name) => held.get(name) ?? 0))) };
}

/** As if no host were held out. */
function opened(rooms: readonly HostRoom[]): HostRoom[] {
  return rooms.map((room) => {
    const copy = room.copy();
    copy.isHeldOut = false;
    return copy;
  });
}

function freeSlots(wish: Wish, { rooms, hosts }: Occupation): FreeSlots {
  return {
    free: sum(wish.allowed.map((index) => (rooms[index]?.isHeldOut === false ? rooms[index].slots : 0))),
    total: sum(wish.allowed.map((index) => hosts[index]?.slots.length ?? 0)),
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

function finite(time: number): number | null {
  return Number.isFinite(time) ? time : null;
}
