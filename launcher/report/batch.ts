/** What waits to be written, as one piece of memory that is used again and again: fresh memory for each chunk costs more than copying it. */
import { prefixLines } from '../local/host.ts';

const FIRST_BYTES = 4096;

export class Batch {
  #memory = Buffer.alloc(0);
  #used = 0;
  /** The memory of a batch that was taken and is written. */
  #spare = Buffer.alloc(0);

  readonly #retainedBytes: number;

  /** `keptBytes`: memory up to this size is kept, twice, while nothing waits. */
  constructor(retainedBytes: number) {
    this.#retainedBytes = retainedBytes;
  }

  get empty(): boolean {
    return this.#used === 0;
  }

  /** Appends `bytes` with `prefix` (ASCII) at the start of every line; `atLineStart`: the first byte begins a line. */
  append(bytes: Uint8Array, prefix: string, atLineStart: boolean): void {
    const copy = (): number =>
      prefix === '' ? this.#copy(bytes) : prefixLines(this.#memory, this.#used, bytes, prefix, atLineStart);
    const length = copy();
    if (length > this.#memory.length - this.#used) {
      this.#grow(this.#used + length);
      copy();
    }
    this.#used += length;
  }

  /** Everything appended so far. Valid until giveBack, which comes before the next take. */
  take(): Uint8Array {
    const taken = this.#memory;
    const used = this.#used;
    this.#memory = this.#spare;
    this.#spare = taken;
    this.#used = 0;
    return taken.subarray(0, used);
  }

  /** What was taken is written. */
  giveBack(): void {
    if (this.#spare.length > this.#retainedBytes) this.#spare = Buffer.alloc(0);
  }

  clear(): void {
    this.#used = 0;
  }

  /** Without the addon: what we say when it cannot be loaded comes this way too. */
  #copy(bytes: Uint8Array): number {
    if (bytes.length <= this.#memory.length - this.#used) this.#memory.set(bytes, this.#used);
    return bytes.length;
  }

  #grow(bytes: number): void {
    const memory = Buffer.allocUnsafeSlow(2 ** Math.ceil(Math.log2(Math.max(bytes, FIRST_BYTES))));
    this.#memory.copy(memory, 0, 0, this.#used);
    this.#memory = memory;
  }
}
