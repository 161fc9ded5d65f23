/**
 * The waiting tasks in the order of their turn: by priority and age, then by their number in the file.
 *
 * A task gains one point of priority for each hour that it waits, at most 20; fractions of an hour count. So two tasks keep
 * their order until one of them has all 20. Tasks of the same demand, time limit and priority form a group. A group has two heaps:
 * of tasks that still age, and of those with all their points. Only the first task of each group is looked at, however many wait.
 */
import type { Demand } from '../model/spec.ts';
import { wishOf, type Wish } from './candidates.ts';
import { Heap, type HeapItem } from './heap.ts';
import { limitOf, type WaitingTask } from './task.ts';

const HOUR = 3_600_000;
const MAX_AGE = 20 * HOUR;

export interface Entry extends HeapItem {
  readonly task: WaitingTask;
  readonly group: Group;
}

export class Group {
  readonly wish: Wish;
  /** Milliseconds that each of its tasks may run. */
  readonly limit: number;
  readonly #priority: number;
  readonly #aging = new Heap<Entry>(isQueuedBefore);
  readonly #aged = new Heap<Entry>(isBeforeInFile);

  constructor(wish: Wish, { timeLimitSeconds, priority }: WaitingTask) {
    this.wish = wish;
    this.limit = limitOf({ timeLimitSeconds });
    this.#priority = priority;
  }

  get size(): number {
    return this.#aging.size + this.#aged.size;
  }

  add(entry: Entry): void {
    this.#aging.add(entry);
  }

  remove(entry: Entry): void {
    (this.#aged.has(entry) ? this.#aged : this.#aging).remove(entry);
  }

  first(now: number): Entry | undefined {
    for (let entry = this.#aging.first; entry !== undefined; entry = this.#aging.first) {
      if (now - entry.task.queuedAt < MAX_AGE) break;
      this.#aging.remove(entry);
      this.#aged.add(entry);
    }
    return this.#aged.first ?? this.#aging.first;
  }

  /** Points of one of its tasks: of priority and of age, times the milliseconds of an hour. */
  pointsOf({ task }: Entry, now: number): number {
    return this.#priority * HOUR + Math.min(MAX_AGE, now - task.queuedAt);
  }
}

export class WaitingTasks {
  readonly #hostNames: readonly string[];
  readonly #entries = new Map<string, Entry>();
  readonly #groups = new Map<string, Group>();
  /** By demand as an object, which the tasks of an array share, and as text. */
  readonly #wishes = new WeakMap<Demand, { readonly key: string; readonly wish: Wish }>();
  readonly #wishesByKey = new Map<string, Wish>();

  constructor(hostNames: readonly string[]) {
    this.#hostNames = hostNames;
  }

  get size(): number {
    return this.#entries.size;
  }

  get tasks(): WaitingTask[] {
    return Array.from(this.#entries.values(), ({ task }) => task);
  }

  get(id: string): Entry | undefined {
    return this.#entries.get(id);
  }

  add(task: WaitingTask): void {
    if (this.#entries.has(task.id)) throw new Error(`task ${task.id} waits already`);
    const { key, wish } = this.#wishOf(task.demand);
    const groupKey = `${task.priority} ${task.timeLimitSeconds} ${key}`;
    const group = this.#groups.get(groupKey) ?? new Group(wish, task);
    this.#groups.set(groupKey, group);
    const entry: Entry = { task, group, heapIndex: -1 };
    group.add(entry);
    this.#entries.set(task.id, entry);
  }

  remove(entry: Entry): void {
    entry.group.remove(entry);
    this.#entries.delete(entry.task.id);
  }

  /** Groups that have tasks. */
  groups(): Iterable<Group> {
    for (const [key, group] of this.#groups) if (group.size === 0) this.#groups.delete(key);
    return this.#groups.values();
  }

  #wishOf(demand: Demand): { readonly key: string; readonly wish: Wish } {
    const known = this.#wishes.get(demand);
    if (known !== undefined) return known;
    const key = keyOf(demand);
    const wish = this.#wishesByKey.get(key) ?? wishOf(demand, this.#hostNames);
    this.#wishesByKey.set(key, wish);
    const found = { key, wish };
    this.#wishes.set(demand, found);
    return found;
  }
}

function keyOf(demand: Demand): string {
  const { ranks, nodes, ranksPerNode, takesSlots, cpusPerRank, memoryBytes, exclusive, hosts, exclude } = demand;
  return JSON.stringify([ranks, nodes, ranksPerNode, takesSlots, cpusPerRank, memoryBytes, exclusive, hosts, exclude]);
}

function isQueuedBefore(one: Entry, other: Entry): boolean {
  if (one.task.queuedAt !== other.task.queuedAt) return one.task.queuedAt < other.task.queuedAt;
  return isBeforeInFile(one, other);
}

export function isBeforeInFile(one: Entry, other: Entry): boolean {
  if (one.task.order !== other.task.order) return one.task.order < other.task.order;
  return one.task.id < other.task.id;
}
