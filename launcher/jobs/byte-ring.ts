/** The last bytes of what is appended, each with its number in the whole. */
export class ByteRing {
  readonly #capacity: number;
  #bytes: Buffer | null = null;
  #written = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** Of the oldest byte that is still here. */
  get first(): number {
    return Math.max(0, this.#written - this.#capacity);
  }

  /** Returns the number of the first of the bytes, which are copied. */
  append(bytes: Uint8Array): number {
    this.#bytes ??= Buffer.allocUnsafeSlow(this.#capacity); // pages that nobody writes cost nothing
    const start = this.#written;
    this.#written += bytes.length;
    const last = bytes.subarray(-this.#capacity);
    const at = (this.#written - last.length) % this.#capacity;
    const before = last.subarray(0, this.#capacity - at);
    this.#bytes.set(before, at);
    this.#bytes.set(last.subarray(before.length), 0);
    return start;
  }

  /** A copy of bytes that are here. */
  copy(start: number, length: number): Buffer {
    if (this.#bytes === null) return Buffer.alloc(0);
    const at = start % this.#capacity;
    const before = this.#bytes.subarray(at, Math.min(at + length, this.#capacity));
    return Buffer.concat([before, this.#bytes.subarray(0, length - before.length)]);
  }
}
