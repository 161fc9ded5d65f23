/** The bytes, which are to be kept: a copy where they are a small part of a large piece of memory, which they would keep, too. */
export function ownBytes(bytes: Uint8Array): Uint8Array {
  return bytes.buffer.byteLength > 2 * bytes.length + 16_384 ? new Uint8Array(bytes) : bytes;
}

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
