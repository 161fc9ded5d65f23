/**
 * Which waiting task starts when and where, on hosts that a hostfile gives: EASY backfilling. Tasks start in the order of their turn.
 * The first one that does not fit gets a reservation; the others start before it only if they do not delay it.
 * All times are in milliseconds and come from the caller, who looks again when tasks are added or end, when `wakeAt` has come, and
 * now and then, since tasks change their order as they wait.
 */
import type { HostCapacity, Placement } from '../model/capacity.ts';
import { partsIn, wishOf, type Wish } from './candidates.ts';
import type { Part } from './gang.ts';
import { lackOf } from './lack.ts';
import { lackText } from './lack-text.ts';
import { Occupation } from './occupation.ts';
import type { Reservation } from './reservation.ts';
import type { RunningTask } from './running.ts';
import { limitOf, type WaitingTask } from './task.ts';
import { Turns } from './turns.ts';
import { WaitingTasks, type Entry } from './waiting.ts';
import { whyWaiting, type Head, type WaitReason } from './why.ts';

interface Start {
  readonly id: string;
  readonly placement: Placement;
}

export class TaskQueue {
  readonly #hosts: Occupation;
  readonly #waiting: WaitingTasks;
  /** As it was found last, for questions about many tasks. */
  #knownHead: { readonly state: string; readonly head: Head | null } | null = null;
  #changes = 0;

  constructor(hosts: readonly HostCapacity[]) {
    this.#hosts = new Occupation(hosts);
    this.#waiting = new WaitingTasks(hosts.map(({ name }) => name));
  }

  get hosts(): readonly HostCapacity[] {
    return this.#hosts.hosts;
  }

  get waitingTasks(): readonly WaitingTask[] {
    return this.#waiting.tasks;
  }

  get runningTasks(): readonly RunningTask[] {
    return this.#hosts.running;
  }

  /** With the ends of their time, the earliest first. */
  get heldHosts(): readonly (readonly [host: string, until: number])[] {
    return this.#hosts.held;
  }

  /** A queue in the same state, to see what would happen. */
  copy(): TaskQueue {
    const copy = new TaskQueue(this.hosts);
    for (const [host, until] of this.heldHosts) copy.holdHost(host, until);
    for (const { id, placement, startedAt, endBy } of this.runningTasks)
      copy.#hosts.start(id, placement, { startedAt, limit: endBy - startedAt });
    copy.#hosts.takeBusy(this.#hosts);
    for (const task of this.#waiting.tasks) copy.add(task);
    return copy;
  }

  add(task: WaitingTask): void {
    if (this.#hosts.runs(task.id)) throw new Error(`task ${task.id} runs already`);
    this.#waiting.add(task);
    this.#changes += 1;
  }

  /** Forgets a waiting task. */
  remove(id: string): void {
    this.#waiting.remove(this.#entry(id));
    this.#changes += 1;
  }

  /** Says of a waiting task that it runs, as after a restart of the scheduler. Throws if others have what it has. */
  started(id: string, placement: Placement, startedAt: number): void {
    this.#start(this.#entry(id), placement, startedAt);
  }

  ended(id: string): void {
    this.#hosts.end(id);
  }

  /** Starts no further task there until then; Infinity: until its release. */
  holdHost(host: string, until: number): void {
    this.#hosts.hold(host, until);
  }

  releaseHost(host: string): void {
    this.#hosts.release(host);
  }

  /** Starts no task on a slot until then, if none has it. */
  holdSlot(host: string, slot: number, now: number, until: number): void {
    this.#hosts.holdSlot(host, slot, now, until);
  }

  /** When the next held host or slot comes back; null: no time is known. */
  wakeAt(): number | null {
    const [first] = this.heldHosts;
    const at = Math.min(first?.[1] ?? Infinity, this.#hosts.busyUntil ?? Infinity);
    return at === Infinity ? null : at;
  }

  /** The tasks that start now. They count as running; where one cannot be started, `ended` takes it out again. */
  next(now: number): Start[] {
    this.#hosts.releaseThoseOver(now);
    const starts: Start[] = [];
    const turns = new Turns(this.#waiting.groups(), now);
    const full = new Set<Wish>(); // those for which there is no room, whatever their time limits
    let reservation: Reservation | null = null;
    for (let turn = turns.first; turn !== undefined; turn = turns.first) {
      const { wish, limit } = turn.group;
      const parts = full.has(wish) ? null : this.#partsFor(wish, now + limit, reservation);
      if (parts === null) {
        turns.skip();
        if (reservation === null || partsIn(wish, this.#hosts.rooms) === null) full.add(wish);
        if (reservation === null && this.#hosts.canFit(wish)) reservation = this.#hosts.reserve(wish, now);
        continue;
      }
      starts.push(this.#place(turn.entry, parts, now, reservation));
      turns.advance();
    }
    return starts;
  }

  /** Why a task still waits after `next`. */
  why(id: string, now: number): WaitReason {
    return whyWaiting(this.#entry(id), { now, hosts: this.#hosts, head: this.#head(now) });
  }

  /** What a demand lacks on hosts without other tasks, in words; null: it fits them. */
  neverFits({ demand }: Pick<WaitingTask, 'demand'>): string | null {
    const wish = wishOf(
      demand,
      this.hosts.map(({ name }) => name),
    );
    const lack = lackOf(wish, this.#hosts.emptyRooms('all'));
    return lack === null ? null : lackText(lack, 'ever');
  }

  #entry(id: string): Entry {
    const entry = this.#waiting.get(id);
    if (entry === undefined) throw new Error(`task ${id} does not wait`);
    return entry;
  }

  #start(entry: Entry, placement: Placement, startedAt: number): void {
    const { task } = entry;
    this.#hosts.start(task.id, placement, { startedAt, limit: limitOf(task) });
    this.#waiting.remove(entry);
  }

  #place(entry: Entry, parts: readonly Part[], now: number, reservation: Reservation | null): Start {
    const { task, group } = entry;
    const placement = this.#hosts.placementOf(group.wish, parts);
    this.#start(entry, placement, now);
    if (reservation?.isAfter(now + group.limit) === false) reservation.take(task.demand, parts);
    return { id: task.id, placement };
  }

  #partsFor(wish: Wish, end: number, reservation: Reservation | null): Part[] | null {
    const { rooms } = this.#hosts;
    return reservation === null ? partsIn(wish, rooms) : reservation.partsFor(wish, rooms, end);
  }

  /** The first task that can fit, but not now. */
  #head(now: number): Head | null {
    const state = `${this.#changes} ${this.#hosts.version} ${now}`;
    if (this.#knownHead?.state !== state) this.#knownHead = { state, head: this.#findHead(now) };
    return this.#knownHead.head;
  }

  #findHead(now: number): Head | null {
    const turns = new Turns(this.#waiting.groups(), now);
    for (let turn = turns.first; turn !== undefined; turn = turns.first) {
      const { wish } = turn.group;
      if (this.#hosts.canFit(wish) && partsIn(wish, this.#hosts.rooms) === null)
        return { id: turn.entry.task.id, reservation: this.#hosts.reserve(wish, now) };
      turns.skip();
    }
    return null;
  }
}
