/** An item of a heap, which keeps its index there, so that it can be removed. */
export interface HeapItem {
  heapIndex: number;
}

/** Binary heap: the first item by `precedes` is known at once; all changes take O(log n). An item is in one heap at most. */
export class Heap<Item extends HeapItem> {
  readonly #items: Item[] = [];
  readonly #precedes: (one: Item, other: Item) => boolean;

  constructor(precedes: (one: Item, other: Item) => boolean) {
    this.#precedes = precedes;
  }

  get size(): number {
    return this.#items.length;
  }

  get first(): Item | undefined {
    return this.#items[0];
  }

  has(item: Item): boolean {
    return this.#items[item.heapIndex] === item;
  }

  add(item: Item): void {
    item.heapIndex = this.#items.length;
    this.#items.push(item);
    this.#rise(item);
  }

  remove(item: Item): void {
    if (!this.has(item)) throw new Error('the item is not in the heap');
    const last = this.#items.pop();
    if (last === undefined || last === item) return;
    this.#put(last, item.heapIndex);
    this.#rise(last);
    this.#sink(last);
  }

  #put(item: Item, index: number): void {
    this.#items[index] = item;
    item.heapIndex = index;
  }

  #rise(item: Item): void {
    for (let index = item.heapIndex; index > 0; ) {
      const above = (index - 1) >> 1;
      const parent = this.#items[above];
      if (parent === undefined || !this.#precedes(item, parent)) return;
      this.#put(parent, index);
      this.#put(item, above);
      index = above;
    }
  }

  #sink(item: Item): void {
    for (;;) {
      const index = item.heapIndex;
      const left = this.#items[2 * index + 1];
      const right = this.#items[2 * index + 2];
      if (left === undefined) return;
      const child = right !== undefined && this.#precedes(right, left) ? right : left;
      if (!this.#precedes(child, item)) return;
      const below = child.heapIndex;
      this.#put(child, index);
      this.#put(item, below);
    }
  }
}
