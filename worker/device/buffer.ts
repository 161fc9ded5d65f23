import { elementBytes, elementTypes, typeOfArray } from '../engine/elements.ts';
import type { ElementType, NcclArray } from '../engine/elements.ts';
import type { DeviceAddress, MemoryHandle, Native } from '../engine/native.ts';
import { translated, translateError, UsageError } from '../engine/errors.ts';
import type { Device } from './device.ts';
import { gpuOfStream, queueOf } from './stream.ts';
import type { DeviceStream } from './stream.ts';

/** Memory that a buffer and its slices share. */
interface Block {
  readonly handle: MemoryHandle;
  closed: boolean;
}

export interface StreamOptions {
  /** In whose order it runs. Default: the device's own stream, `comm.device.stream`. */
  readonly stream?: DeviceStream;
}

/** For this package: where a buffer begins; UsageError if it was closed. */
export let addressOf: (buffer: DeviceBuffer, call: string) => DeviceAddress;
/** For this package. */
export let deviceOf: (buffer: DeviceBuffer) => Device;
/** For this package: the same for buffers that share memory. */
export let blockOf: (buffer: DeviceBuffer) => object;

/**
 * Elements in the memory of a device: of a GPU, or of the host device, which is ordinary memory. Collectives take it where they take a
 * typed array. Made by `comm.allocate`; freed by `close`, at the end of a block that has it `using`, or by the garbage collector.
 */
export class DeviceBuffer implements Disposable {
  /** What the elements are. */
  readonly type: ElementType;
  /** Elements. */
  readonly length: number;
  readonly byteLength: number;
  /** Bytes from the beginning of the memory that slices share. */
  readonly byteOffset: number;
  readonly #native: Native;
  readonly #device: Device;
  readonly #block: Block;

  static {
    addressOf = (buffer, call) => [buffer.#open(call), buffer.byteOffset];
    deviceOf = (buffer) => buffer.#device;
    blockOf = (buffer) => buffer.#block;
  }

  /** For `allocate`; programs do not call it. */
  constructor(native: Native, device: Device, block: Block, type: ElementType, offset: number, length: number) {
    this.#native = native;
    this.#device = device;
    this.#block = block;
    this.type = type;
    this.length = length;
    this.byteLength = length * elementBytes[type];
    this.byteOffset = offset;
  }

  /**
   * Elements `begin` to `end` (default: the end), without a copy: the same memory.
   *
   * @throws UsageError for a range that does not lie in the buffer
   */
  slice(begin: number, end: number = this.length): DeviceBuffer {
    this.#open('slice');
    if (!Number.isInteger(begin) || !Number.isInteger(end) || begin < 0 || end < begin || end > this.length)
      throw new UsageError(`slice: ${begin} to ${end} is no range of a buffer of ${this.length} elements`);
    const offset = this.byteOffset + begin * elementBytes[this.type];
    return new DeviceBuffer(this.#native, this.#device, this.#block, this.type, offset, end - begin);
  }

  /**
   * Copies an array of the buffer's type and length into it. Resolves to the buffer when that has ended; until then the array must not be
   * changed. Copies of several streams run at the same time; the event loop stays free.
   *
   * @throws UsageError for an array of another type or length, or after `close`
   * @throws NcclError if the device fails
   */
  async copyFrom(array: NcclArray, options: StreamOptions = {}): Promise<this> {
    await this.#copy('copyFrom', array, true, options);
    return this;
  }

  /** Copies it into an array of its type and length. Resolves to the array when that has ended. Errors: as of `copyFrom`. */
  async copyTo<T extends NcclArray>(array: T, options: StreamOptions = {}): Promise<T> {
    await this.#copy('copyTo', array, false, options);
    return array;
  }

  /**
   * Sets every element to `value`; the buffer's bytes are all alike afterwards, so `value` is 0, or of a type with one byte per element a
   * whole number from 0 to 255. Resolves to the buffer.
   *
   * @throws UsageError for another value, or after `close`
   */
  async fill(value: number, options: StreamOptions = {}): Promise<this> {
    const handle = this.#open('fill');
    const bytes = this.type === 'uint8' ? 255 : this.type === 'int8' ? 127 : 0;
    if (!Number.isInteger(value) || value < 0 || value > bytes)
      throw new UsageError(`fill: ${value} cannot fill a buffer of ${this.type}; copyFrom an array that has it`);
    const { handle: stream, queue } = this.#on('fill', options);
    await translated(() =>
      queue.queue(null, () => this.#native.streamFill(stream, handle, this.byteOffset, this.byteLength, value)),
    );
    return this;
  }

  /** Frees the memory of the buffer and its slices once what was queued on it has ended. Closing again does nothing. */
  close(): void {
    if (this.#block.closed) return;
    this.#block.closed = true;
    try {
      this.#native.deviceFree(this.#block.handle);
    } catch (error) {
      throw translateError(error);
    }
  }

  [Symbol.dispose](): void {
    this.close();
  }

  async #copy(call: 'copyFrom' | 'copyTo', array: NcclArray, toDevice: boolean, options: StreamOptions): Promise<void> {
    const memory = this.#open(call);
    const type = typeOfArray(array, call, this.type);
    if (type !== elementTypes.indexOf(this.type) || array.length !== this.length)
      throw new UsageError(
        `${call}: a ${array[Symbol.toStringTag]} of ${array.length} and a buffer of ${this.length} ${this.type} are not alike`,
      );
    const { handle, queue } = this.#on(call, options);
    const work = () => this.#native.streamCopy(handle, memory, this.byteOffset, array, toDevice);
    await translated(() => queue.queue(null, work, array));
  }

  #on(call: string, { stream = this.#device.stream }: StreamOptions) {
    if (gpuOfStream(stream) !== this.#device.gpu)
      throw new UsageError(`${call}: the stream is of another device than the buffer`);
    const queue = queueOf(stream);
    return { queue, handle: queue.handle };
  }

  #open(call: string): MemoryHandle {
    if (this.#block.closed) throw new UsageError(`${call}: the buffer was closed before`);
    return this.#block.handle;
  }
}
