/** The first task of each group in the order of their turns, at one moment. */
import { Heap, type HeapItem } from './heap.ts';
import { isBeforeInFile, type Entry, type Group } from './waiting.ts';

interface Turn {
  readonly group: Group;
  /** The group's first task. */
  readonly entry: Entry;
}

interface Item extends Turn, HeapItem {
  readonly points: number;
}

export class Turns {
  readonly #now: number;
  readonly #items = new Heap<Item>((one, other) =>
    one.points === other.points ? isBeforeInFile(one.entry, other.entry) : one.points > other.points,
  );

  constructor(groups: Iterable<Group>, now: number) {
    this.#now = now;
    for (const group of groups) this.#add(group);
  }

  get first(): Turn | undefined {
    return this.#items.first;
  }

  /** Leaves out what is first, and the rest of its group. */
  skip(): void {
    this.#remove();
  }

  /** The group goes on with its next task, after the first one was removed from it. */
  advance(): void {
    const item = this.#remove();
    if (item !== undefined) this.#add(item.group);
  }

  #remove(): Item | undefined {
    const { first } = this.#items;
    if (first !== undefined) this.#items.remove(first);
    return first;
  }

  #add(group: Group): void {
    const entry = group.first(this.#now);
    if (entry !== undefined) this.#items.add({ group, entry, points: group.pointsOf(entry, this.#now), heapIndex: -1 });
  }
}
