/** What the hosts are occupied with: running tasks, and hosts that are held out. */
import type { HostCapacity, Placement } from '../model/capacity.ts';
import { BusySlots } from './busy-slots.ts';
import { partsIn, type Wish } from './candidates.ts';
import type { Part } from './gang.ts';
import { HeldHosts } from './held-hosts.ts';
import { HostRoom, useOfShare } from './host-room.ts';
import { reserve, type Release, type Reservation } from './reservation.ts';
import { Resources } from './resources.ts';
import { RunningTasks, type RunningTask } from './running.ts';

export class Occupation {
  readonly hosts: readonly HostCapacity[];
  readonly #resources: Resources;
  readonly #running = new RunningTasks();
  readonly #held = new HeldHosts();
  /** Each is one of the running, too. */
  readonly #busy = new BusySlots();
  /** By wish: whether it fits the hosts that are not held out for ever, as long as these are the same. */
  #fitting = new Map<Wish, boolean>();
  #version = 0;

  constructor(hosts: readonly HostCapacity[]) {
    this.hosts = hosts;
    this.#resources = new Resources(hosts);
  }

  /** Changes whenever anything else does. */
  get version(): number {
    return this.#version;
  }

  /** What is free now. */
  get rooms(): readonly HostRoom[] {
    return this.#resources.rooms;
  }

  /** By their ends at the latest. */
  get running(): readonly RunningTask[] {
    return this.#running.byEnd();
  }

  /** Hosts with the ends of their time, the earliest first. */
  get held(): readonly (readonly [host: string, until: number])[] {
    return this.#held.byEnd();
  }

  runs(id: string): boolean {
    return this.#running.get(id) !== undefined;
  }

  placementOf(wish: Wish, parts: readonly Part[]): Placement {
    return this.#resources.placementOf(wish.demand, parts);
  }

  /** `limit` in milliseconds. Hosts that are not ours are left out: a hostfile may have changed since the task's start. */
  start(id: string, placement: Placement, { startedAt, limit }: { startedAt: number; limit: number }): void {
    const ours = placement.filter(({ host }) => this.#resources.indexOf(host) !== undefined);
    this.#resources.take(ours);
    this.#running.add({ id, placement: ours, startedAt, endBy: startedAt + limit });
    this.#version += 1;
  }

  end(id: string): void {
    const task = this.#running.get(id);
    if (task === undefined) throw new Error(`task ${id} does not run`);
    this.#running.remove(task);
    this.#busy.remove(id);
    this.#resources.giveBack(task.placement);
    this.#version += 1;
  }

  hold(host: string, until: number): void {
    this.#held.hold(host, until);
    this.#heldChanged(host, true);
  }

  release(host: string): void {
    this.#held.release(host);
    this.#heldChanged(host, false);
  }

  /** Another job has the slot until then, as far as is known. What a task of ours has stays its. */
  holdSlot(host: string, slot: number, now: number, until: number): void {
    const id = BusySlots.nameOf(host, slot);
    if (this.runs(id)) this.end(id);
    if (!this.#resources.hasFreeSlot(host, slot)) return;
    const share = { host, ranks: 1, slots: [slot], cpus: 0, memoryBytes: 0, exclusive: false };
    this.start(id, [share], { startedAt: now, limit: until - now });
    this.#busy.add(id, until);
  }

  /** When the next such slot is free again; null: there is none. */
  get busyUntil(): number | null {
    return this.#busy.firstEnd();
  }

  /** Those of another one, which run here already. */
  takeBusy(other: Occupation): void {
    for (const [id, until] of other.#busy.all) this.#busy.add(id, until);
  }

  releaseThoseOver(now: number): void {
    for (const id of this.#busy.expire(now)) this.end(id);
    for (const host of this.#held.expire(now)) this.#heldChanged(host, false);
  }

  /** Whether it fits one day, as far as is known. */
  canFit(wish: Wish): boolean {
    const known = this.#fitting.get(wish);
    if (known !== undefined) return known;
    const fits = partsIn(wish, this.emptyRooms('without those held for ever')) !== null;
    this.#fitting.set(wish, fits);
    return fits;
  }

  /** Rooms of hosts on which nothing runs. */
  emptyRooms(which: 'all' | 'without those held for ever'): HostRoom[] {
    return this.hosts.map((capacity) => {
      const room = new HostRoom(capacity);
      room.isHeldOut = which !== 'all' && this.#held.untilOf(capacity.name) === Infinity;
      return room;
    });
  }

  /** Keeps what it needs at the earliest time at which it fits, for a demand that can fit. */
  reserve(wish: Wish, now: number): Reservation {
    const reservation = reserve(wish, {
      rooms: this.rooms,
      releases: this.#releases(now),
      endless: this.endless().map(({ placement }) => placement),
      emptyRooms: () => this.emptyRooms('without those held for ever'),
      indexOf: (host) => this.#resources.indexOf(host),
    });
    if (reservation === null) throw new Error('what never fits gets no reservation');
    return reservation;
  }

  /** Running tasks without a time limit. */
  endless(): RunningTask[] {
    return this.running.filter(({ endBy }) => endBy === Infinity);
  }

  /** A task beyond its limit is about to end, and a host beyond its time about to be released. */
  #releases(now: number): Release[] {
    const releases: Release[] = [];
    for (const { endBy, placement } of this.running) {
      if (endBy !== Infinity)
        releases.push({ at: Math.max(now, endBy), free: (rooms) => this.#giveBack(placement, rooms) });
    }
    const ofTasks = releases.length;
    for (const [host, until] of this.held) {
      const index = this.#resources.indexOf(host);
      if (until === Infinity || index === undefined) continue;
      releases.push({
        at: Math.max(now, until),
        free: (rooms) => {
          const room = rooms[index];
          if (room !== undefined) room.isHeldOut = false;
        },
      });
    }
    return releases.length === ofTasks ? releases : releases.sort((one, other) => one.at - other.at);
  }

  #giveBack(placement: Placement, rooms: readonly HostRoom[]): void {
    for (const share of placement) rooms[this.#resources.indexOf(share.host) ?? -1]?.giveBack(useOfShare(share));
  }

  #heldChanged(host: string, isHeldOut: boolean): void {
    const room = this.rooms[this.#resources.indexOf(host) ?? -1];
    if (room !== undefined) room.isHeldOut = isHeldOut;
    this.#fitting = new Map();
    this.#version += 1;
  }
}
