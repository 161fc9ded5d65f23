/** Memory of the engine's for a program's arrays. */
import { loadNative } from './engine/load.ts';
import type { Native } from './engine/native.ts';
import { UsageError, translateError } from './engine/errors.ts';

/**
 * Memory that the engine allocated: whole pages, outside of JavaScript's heap. Arrays over its `buffer` are used like any others. It is freed
 * by `close`, at the end of a block that has it `using`, or by the garbage collector when nothing refers to `buffer` any more. Made by
 * `allocate`.
 */
export class Memory implements Disposable {
  readonly byteLength: number;
  readonly #native: Native;
  #buffer: ArrayBuffer | null;

  /** For `allocate`; programs do not call it. */
  constructor(native: Native, buffer: ArrayBuffer) {
    this.#native = native;
    this.#buffer = buffer;
    this.byteLength = buffer.byteLength;
  }

  /**
   * What typed arrays are made over: `new Float32Array(memory.buffer)`.
   *
   * @throws UsageError after `close`
   */
  get buffer(): ArrayBuffer {
    if (this.#buffer === null) throw new UsageError(`memory of ${this.byteLength} bytes was closed before`);
    return this.#buffer;
  }

  /**
   * Frees it. Arrays over it have no elements from then on, and operations refuse them with a UsageError; operations under way end as if it
   * were still there. Closing again does nothing.
   */
  close(): void {
    if (this.#buffer !== null) this.#native.memoryFree(this.#buffer);
    this.#buffer = null;
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

/**
 * Memory of the engine, zeroed.
 *
 *     using memory = allocate(4 * 1024);
 *     await comm.allReduce(new Float32Array(memory.buffer));
 *
 * @throws UsageError for what is no size
 * @throws NcclError `systemError` if the system does not have as much
 */
export function allocate(bytes: number): Memory {
  if (!Number.isSafeInteger(bytes) || bytes < 0)
    throw new UsageError(`allocate: ${bytes} is no number of bytes; it must be a whole number from 0`);
  const native = loadNative();
  try {
    return new Memory(native, native.memoryAllocate(bytes));
  } catch (error) {
    throw translateError(error);
  }
}
