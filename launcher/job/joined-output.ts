/** Output that waits until the reporter takes it: of each stream of each rank one chunk, however many small ones it came in. */
import type { OutputChunk } from '../model/event.ts';

interface Joined {
  /** The first of them. */
  readonly first: OutputChunk;
  buffer: Buffer;
  length: number;
  partial: boolean;
}

export class JoinedOutput {
  readonly #joined = new Map<string, Joined>();

  get isEmpty(): boolean {
    return this.#joined.size === 0;
  }

  add(chunk: OutputChunk): void {
    const source = `${chunk.rank} ${chunk.stream}`;
    const known = this.#joined.get(source) ?? { first: chunk, buffer: Buffer.alloc(0), length: 0, partial: false };
    const length = known.length + chunk.bytes.length;
    if (length > known.buffer.length) {
      const larger = Buffer.allocUnsafe(2 * length);
      known.buffer.copy(larger, 0, 0, known.length);
      known.buffer = larger;
    }
    known.buffer.set(chunk.bytes, known.length);
    known.length = length;
    known.partial = chunk.partial;
    this.#joined.set(source, known);
  }

  /** All of it; none is left. */
  take(): OutputChunk[] {
    const all = Array.from(this.#joined.values(), ({ first, buffer, length, partial }) => ({
      ...first,
      bytes: buffer.subarray(0, length),
      partial,
    }));
    this.#joined.clear();
    return all;
  }
}
