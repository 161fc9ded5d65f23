/** A map that holds the last `capacity` entries: enough to answer latecomers, never more than that over a long job. */
export class RecentMap<Value> {
  readonly #entries = new Map<string, Value>();
  readonly #capacity: number;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get(name: string): Value | undefined {
    return this.#entries.get(name);
  }

  set(name: string, value: Value): void {
    this.#entries.delete(name);
    this.#entries.set(name, value);
    const [oldest] = this.#entries.keys();
    if (this.#entries.size > this.#capacity && oldest !== undefined) this.#entries.delete(oldest);
  }
}
