import { barrierOperation, collectiveOperation, transferOperation } from './calls.ts';
import type {
  CollectiveCall,
  Member,
  OperationOptions,
  ReduceOptions,
  RootOptions,
  RootReduceOptions,
  Signal,
} from './calls.ts';
import { DeviceBuffer } from './device/buffer.ts';
import type { Device } from './device/device.ts';
import { isOnDevice } from './device/operands.ts';
import type { NcclBuffer, OnDevice } from './device/operands.ts';
import type { DeviceStream } from './device/stream.ts';
import type { ElementType } from './engine/elements.ts';
import { OperationPromises } from './operation-promises.ts';
import type { CommHost } from './comm-host.ts';
import type { CommHandle, Native, Operation } from './engine/native.ts';
import { translated, translateError, UsageError } from './engine/errors.ts';
import { ExchangeQueue } from './exchange.ts';
import { addToGroup, inGroup } from './group.ts';

type State =
  | { readonly type: 'open' }
  | { readonly type: 'aborted'; readonly reason: string }
  | { readonly type: 'closed'; readonly ended: Promise<void> };

/**
 * One rank's membership in a group of ranks. Made by `init`.
 *
 * Every rank must call the same operations in the same order, with arrays of the same length and type. Operations of one
 * communicator run one after another in the order of the calls; a call returns at once and its promise settles when the
 * operation has ended on this rank. Until then the arrays must not be changed or transferred. The event loop stays free.
 *
 * Operations reject with NcclError when another rank died, aborted or lost its connection (`code` 'remoteError'), and with
 * UsageError when the call itself is wrong.
 */
export class Communicator implements AsyncDisposable {
  /** Our number, 0 … size-1. */
  readonly rank: number;
  /** Ranks in this communicator, on all hosts. */
  readonly size: number;
  /** Our number among the ranks of this host, 0 … localSize-1. */
  readonly localRank: number;
  /** Ranks of this communicator on this host. */
  readonly localSize: number;
  /** Our host: an index into `hosts`. */
  readonly host: number;
  /** All hosts that have ranks of this communicator. */
  readonly hosts: readonly CommHost[];
  /** Where its buffers lie: a GPU, or the host device. */
  readonly device: Device;

  readonly #native: Native;
  readonly #handle: CommHandle;
  readonly #member: Member;
  readonly #promises = new OperationPromises();
  readonly #exchange: ExchangeQueue;
  /** On streams of the device. */
  readonly #queued = new Set<Promise<void>>();
  #state: State = { type: 'open' };
  #lastSplit: Promise<unknown> = Promise.resolve();

  /** For `init`; programs do not call it. */
  constructor(native: Native, handle: CommHandle, device: Device) {
    this.#native = native;
    this.device = device;
    this.#handle = handle;
    this.#exchange = new ExchangeQueue(native, this.#promises);
    native.commWatch(handle, this.#promises.watcher);
    const info = native.commInfo(handle);
    this.rank = info.rank;
    this.size = info.size;
    this.localRank = info.localRank;
    this.localSize = info.localSize;
    this.host = info.host;
    this.hosts = info.hosts;
    this.#member = { handle, rank: info.rank, size: info.size, device };
  }

  /**
   * A buffer of `length` elements in the memory of the communicator's device, zeroed.
   *
   * @throws UsageError for an unknown type or what is no length
   * @throws NcclError if the device does not have as much
   */
  allocate(type: ElementType, length: number): DeviceBuffer {
    return this.device.allocate(type, length);
  }

  /** A stream for operations on device buffers, which runs at the same time as others. Throws `NcclError` if the device gives none. */
  stream(): DeviceStream {
    return this.device.newStream();
  }

  /**
   * Combines the ranks' arrays element by element; every rank gets the result. With one array in place, with two from `send` into
   * `receive`, which have the same type and length. Resolves to the array that has the result.
   */
  allReduce<T extends NcclBuffer>(array: T, options?: ReduceOptions): Promise<T>;
  allReduce<T extends NcclBuffer>(send: T, receive: T, options?: ReduceOptions): Promise<T>;
  async allReduce<T extends NcclBuffer>(send: T, second?: T | ReduceOptions, third?: ReduceOptions): Promise<T> {
    const receive = isArray<T>(second) ? second : send;
    const options = (isArray<T>(second) ? third : second) ?? {};
    const waits = this.#collective({ kind: 'allReduce', send, receive, options });
    if (waits !== null) await waits;
    return receive;
  }

  /**
   * Every rank gets the arrays of all, in order of rank: `receive` has `size` times the elements of `send`. In place where `send` is the
   * rank's own part of `receive`: `receive.subarray(rank * n, (rank + 1) * n)`. Resolves to `receive`.
   */
  async allGather<T extends NcclBuffer>(send: T, receive: T, options: OperationOptions = {}): Promise<T> {
    const waits = this.#collective({ kind: 'allGather', send, receive, options });
    if (waits !== null) await waits;
    return receive;
  }

  /**
   * Combines the ranks' arrays element by element; each rank gets its part of the result: `send` has `size` times the elements of
   * `receive`. In place where `receive` is the rank's own part of `send`. Resolves to `receive`.
   */
  async reduceScatter<T extends NcclBuffer>(send: T, receive: T, options: ReduceOptions = {}): Promise<T> {
    const waits = this.#collective({ kind: 'reduceScatter', send, receive, options });
    if (waits !== null) await waits;
    return receive;
  }

  /**
   * Every rank gets what rank `root` has. With one array in place, with two from `send` (null at the other ranks) into `receive`.
   * Resolves to the array that has the data.
   */
  broadcast<T extends NcclBuffer>(array: T, options?: RootOptions): Promise<T>;
  broadcast<T extends NcclBuffer>(send: T | null, receive: T, options?: RootOptions): Promise<T>;
  async broadcast<T extends NcclBuffer>(first: T | null, second?: T | RootOptions, third?: RootOptions): Promise<T> {
    const receive = isArray<T>(second) ? second : first;
    const options = (isArray<T>(second) ? third : second) ?? {};
    if (receive === null) throw new UsageError('broadcast: there is no array to receive into');
    const waits = this.#collective({ kind: 'broadcast', send: first, receive, options });
    if (waits !== null) await waits;
    return receive;
  }

  /**
   * Combines the ranks' arrays element by element; rank `root` gets the result. With one array in place, with two from `send` into
   * `receive`, which is null at the other ranks. Resolves to the array that has the result at `root`, to null or the array elsewhere.
   */
  reduce<T extends NcclBuffer>(array: T, options?: RootReduceOptions): Promise<T>;
  reduce<T extends NcclBuffer>(send: T, receive: T, options?: RootReduceOptions): Promise<T>;
  reduce<T extends NcclBuffer>(send: T, receive: T | null, options?: RootReduceOptions): Promise<T | null>;
  async reduce<T extends NcclBuffer>(
    send: T,
    second?: T | null | RootReduceOptions,
    third?: RootReduceOptions,
  ): Promise<T | null> {
    const receive = second === null || isArray<T>(second) ? second : send;
    const options = (second === null || isArray<T>(second) ? third : second) ?? {};
    const waits = this.#collective({ kind: 'reduce', send, receive, options });
    if (waits !== null) await waits;
    return receive;
  }

  /**
   * Every rank gets one part of every rank's array: part `p` of `receive` is part `rank` of what rank `p` sends. Both arrays have a part per
   * rank, all of one length. In place with one array. Resolves to the array that has the result.
   */
  allToAll<T extends NcclBuffer>(array: T, options?: OperationOptions): Promise<T>;
  allToAll<T extends NcclBuffer>(send: T, receive: T, options?: OperationOptions): Promise<T>;
  async allToAll<T extends NcclBuffer>(send: T, second?: T | OperationOptions, third?: OperationOptions): Promise<T> {
    const receive = isArray<T>(second) ? second : send;
    const options = (isArray<T>(second) ? third : second) ?? {};
    const waits = this.#collective({ kind: 'allToAll', send, receive, options });
    if (waits !== null) await waits;
    return receive;
  }

  /**
   * Rank `root` gets the arrays of all, in order of rank: its `receive` has `size` times the elements of `send`, and is null at the other
   * ranks. Resolves to `receive`.
   */
  gather<T extends NcclBuffer>(send: T, receive: T, options?: RootOptions): Promise<T>;
  gather<T extends NcclBuffer>(send: T, receive: T | null, options?: RootOptions): Promise<T | null>;
  async gather<T extends NcclBuffer>(send: T, receive: T | null, options: RootOptions = {}): Promise<T | null> {
    const waits = this.#collective({ kind: 'gather', send, receive, options });
    if (waits !== null) await waits;
    return receive;
  }

  /**
   * Every rank gets its part of what rank `root` has: its `send` has `size` times the elements of `receive`, and is null at the other ranks.
   * Resolves to `receive`.
   */
  async scatter<T extends NcclBuffer>(send: T | null, receive: T, options: RootOptions = {}): Promise<T> {
    const waits = this.#collective({ kind: 'scatter', send, receive, options });
    if (waits !== null) await waits;
    return receive;
  }

  /**
   * Sends the array to rank `peer`, which has to receive as many bytes from us. Sends and receives begun in one step
   * (`await Promise.all([comm.send(a, next), comm.recv(b, previous)])`) make progress together; one that is awaited by itself
   * may have to wait until the peer receives.
   */
  async send(array: NcclBuffer, peer: number, options: OperationOptions = {}): Promise<void> {
    this.#checkOpen('send');
    await this.#transfer(transferOperation(this.#member, 'send', array, peer, options), options.signal);
  }

  /** Fills the array with what rank `peer` sends us; resolves to it. See `send`. */
  async recv<T extends NcclBuffer>(array: T, peer: number, options: OperationOptions = {}): Promise<T> {
    this.#checkOpen('recv');
    await this.#transfer(transferOperation(this.#member, 'receive', array, peer, options), options.signal);
    return array;
  }

  /** Resolves when all ranks of the communicator have come here, and everything they called before has ended. */
  async barrier(options: Pick<OperationOptions, 'signal' | 'stream'> = {}): Promise<void> {
    this.#checkOpen('barrier');
    const waits = this.#begin(barrierOperation(this.#member, options), options.signal);
    if (waits !== null) await waits;
  }

  /** Resolves when all ranks of this host have come here. Does not wait for operations called before. */
  async nodeBarrier(): Promise<void> {
    this.#checkOpen('nodeBarrier');
    this.#exchange.flush();
    await translated(() => this.#native.nodeBarrier(this.#handle));
  }

  /**
   * Makes communicators of the ranks of this one: one of all that call with the same `color` (0 or more), numbered by `key` and, where keys
   * are equal, by their rank here. Every rank calls it; one whose color is null takes part in none and gets null. This one stays in use.
   */
  split(color: number, key?: number): Promise<Communicator>;
  split(color: number | null, key?: number): Promise<Communicator | null>;
  async split(color: number | null, key = 0): Promise<Communicator | null> {
    this.#checkOpen('split');
    if (color !== null && !isSplitNumber(color, 0))
      throw new UsageError(`split: the color is ${color}; it must be null or a whole number from 0 to ${LARGEST}`);
    if (!isSplitNumber(key, -LARGEST)) throw new UsageError(`split: the key is ${key}; it must be a whole number`);
    this.#exchange.flush();
    // In the order of the calls, which is the same at every rank.
    const split = this.#lastSplit.then(() => translated(() => this.#native.commSplit(this.#handle, color, key)));
    this.#lastSplit = split.catch(() => null);
    const handle = await split;
    return handle === null ? null : new Communicator(this.#native, handle, this.device);
  }

  /**
   * Breaks the communicator at once: here and at every other rank, operations under way and later ones fail. `reason` is part of
   * what their errors say. Close it afterwards.
   */
  abort(reason: string): void {
    this.#checkOpen('abort');
    this.#exchange.flush();
    this.#state = { type: 'aborted', reason };
    try {
      this.#native.abort(this.#handle, reason);
    } catch (error) {
      throw translateError(error);
    }
  }

  /** Waits for what was called before and leaves the communicator. Calling it again gives the same promise. */
  close(): Promise<void> {
    if (this.#state.type !== 'closed') {
      this.#exchange.flush();
      this.#state = { type: 'closed', ended: this.#leave() };
    }
    return this.#state.ended;
  }

  /** `await using comm = await init()` closes it at the end of the block. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #collective(call: CollectiveCall): Promise<void> | null {
    this.#checkOpen(call.kind);
    return this.#begin(collectiveOperation(this.#member, call), call.options.signal);
  }

  async #leave(): Promise<void> {
    if (this.#queued.size > 0) await Promise.allSettled(this.#queued);
    await translated(() => this.#native.commClose(this.#handle));
  }

  #transfer(operation: Operation | OnDevice, signal: Signal | undefined): Promise<void> | null {
    if (inGroup()) return this.#begin(operation, signal);
    if (!isOnDevice(operation)) return this.#guarded(signal, () => this.#exchange.add(operation));
    this.#exchange.flush();
    return this.#guarded(signal, () => this.#track(operation.queue.transfer(operation.operation)));
  }

  /** null: it has ended. Throws what the operation would reject with. */
  #begin(operation: Operation | OnDevice, signal: Signal | undefined): Promise<void> | null {
    this.#exchange.flush();
    if (isOnDevice(operation)) return this.#guarded(signal, () => this.#track(this.#queue(operation)));
    if (inGroup()) return this.#guarded(signal, () => addToGroup(this.#native, this.#promises, operation));
    if (signal !== undefined) return this.#guarded(signal, () => this.#operate(operation) ?? Promise.resolve());
    try {
      const waits = this.#operate(operation);
      return waits === null ? null : translated(() => waits);
    } catch (error) {
      throw translateError(error);
    }
  }

  #queue({ queue, operation }: OnDevice): Promise<void> {
    if (!inGroup()) return queue.operate(operation);
    queue.flush();
    const promises = { of: () => queue.ended(this.#handle) };
    return addToGroup(this.#native, promises, [...operation, queue.handle]);
  }

  /** Notes what has to end before the communicator is left. */
  #track(ended: Promise<void>): Promise<void> {
    this.#queued.add(ended);
    const forget = () => this.#queued.delete(ended);
    ended.then(forget, forget);
    return ended;
  }

  #operate(operation: Operation): Promise<void> | null {
    return this.#promises.of(this.#native.operate(...operation), operation);
  }

  async #guarded(signal: Signal | undefined, begin: () => Promise<void>): Promise<void> {
    if (signal === undefined) return translated(begin);
    signal.throwIfAborted();
    const breakNow = () => {
      if (this.#state.type === 'open') this.abort(`the signal of an operation was aborted: ${String(signal.reason)}`);
    };
    signal.addEventListener('abort', breakNow);
    try {
      await translated(begin);
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    } finally {
      signal.removeEventListener('abort', breakNow);
    }
  }

  #checkOpen(call: string): void {
    switch (this.#state.type) {
      case 'open':
        return;
      case 'aborted':
        throw new UsageError(`${call}: the communicator was aborted before: ${this.#state.reason}`);
      case 'closed':
        throw new UsageError(`${call}: the communicator was closed before`);
      default:
        this.#state satisfies never;
    }
  }
}

/** Colours and keys are C's int. */
const LARGEST = 2 ** 31 - 1;

function isSplitNumber(value: number, min: number): boolean {
  return Number.isInteger(value) && value >= min && value <= LARGEST;
}

function isArray<T extends NcclBuffer>(value: T | RootReduceOptions | null | undefined): value is T {
  return ArrayBuffer.isView(value) || value instanceof DeviceBuffer;
}
