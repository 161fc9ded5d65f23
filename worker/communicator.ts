import { elementType, operatorNumber } from './elements.ts';
import type { NcclArray, ReduceOperator } from './elements.ts';
import type { CommHandle, Native } from './engine/native.ts';
import { UsageError, translateError, translated } from './errors.ts';
import { ExchangeQueue } from './exchange.ts';

export interface AllReduceOptions {
  /** Default: 'sum'. */
  readonly op?: ReduceOperator;
}

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
  /** Names of all hosts that have ranks of this communicator. */
  readonly hosts: readonly string[];

  readonly #native: Native;
  readonly #handle: CommHandle;
  readonly #exchange: ExchangeQueue;
  #state: State = { type: 'open' };

  /** For `init`; programs do not call it. */
  constructor(native: Native, handle: CommHandle) {
    this.#native = native;
    this.#handle = handle;
    this.#exchange = new ExchangeQueue(native, handle);
    const info = native.commInfo(handle);
    this.rank = info.rank;
    this.size = info.size;
    this.localRank = info.localRank;
    this.localSize = info.localSize;
    this.host = info.host;
    this.hosts = info.hosts;
  }

  /**
   * Combines the ranks' arrays element by element; every rank gets the result. With one array in place, with two from `send` into
   * `receive`, which have the same type and length. Resolves to the array that has the result.
   */
  allReduce<T extends NcclArray>(array: T, options?: AllReduceOptions): Promise<T>;
  allReduce<T extends NcclArray>(send: T, receive: T, options?: AllReduceOptions): Promise<T>;
  async allReduce<T extends NcclArray>(send: T, second?: T | AllReduceOptions, third?: AllReduceOptions): Promise<T> {
    const receive = isArray<T>(second) ? second : send;
    const options = (isArray<T>(second) ? third : second) ?? {};
    this.#checkOpen('allReduce');
    const type = elementType(send, 'the array to send');
    if (type !== elementType(receive, 'the array to receive into') || send.length !== receive.length) {
      throw new UsageError(
        `allReduce: cannot reduce from ${describe(send)} into ${describe(receive)}; they must be alike`,
      );
    }
    const operator = operatorNumber(options.op ?? 'sum');
    await this.#inOrder((handle) => this.#native.allReduce(handle, send, receive, send.length, type, operator));
    return receive;
  }

  /**
   * Sends the array to rank `peer`, which has to receive as many bytes from us. Sends and receives begun in one step
   * (`await Promise.all([comm.send(a, next), comm.recv(b, previous)])`) make progress together; one that is awaited by itself
   * may have to wait until the peer receives.
   */
  async send(array: NcclArray, peer: number): Promise<void> {
    await this.#transfer('send', array, peer);
  }

  /** Fills the array with what rank `peer` sends us; resolves to it. See `send`. */
  async recv<T extends NcclArray>(array: T, peer: number): Promise<T> {
    await this.#transfer('recv', array, peer);
    return array;
  }

  /** Resolves when all ranks of the communicator have come here, and everything they called before has ended. */
  async barrier(): Promise<void> {
    this.#checkOpen('barrier');
    await this.#inOrder((handle) => this.#native.barrier(handle));
  }

  /** Resolves when all ranks of this host have come here. Does not wait for operations called before. */
  async nodeBarrier(): Promise<void> {
    this.#checkOpen('nodeBarrier');
    await this.#inOrder((handle) => this.#native.nodeBarrier(handle));
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
      this.#state = { type: 'closed', ended: translated(() => this.#native.commClose(this.#handle)) };
    }
    return this.#state.ended;
  }

  /** `await using comm = await init()` closes it at the end of the block. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #transfer(kind: 'send' | 'recv', array: NcclArray, peer: number): Promise<void> {
    this.#checkOpen(kind);
    const type = elementType(array, `the array to ${kind}`);
    if (!Number.isInteger(peer) || peer < 0 || peer >= this.size) {
      throw new UsageError(`${kind}: rank ${peer} does not exist; this communicator has ranks 0 to ${this.size - 1}`);
    }
    const transfer = { sends: kind === 'send', buffer: array, count: array.length, type, peer };
    await translated(() => this.#exchange.add(transfer));
  }

  #inOrder<T>(begin: (handle: CommHandle) => Promise<T>): Promise<T> {
    this.#exchange.flush();
    return translated(() => begin(this.#handle));
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

function isArray<T extends NcclArray>(value: T | AllReduceOptions | undefined): value is T {
  return ArrayBuffer.isView(value);
}

function describe(array: NcclArray): string {
  return `a ${array[Symbol.toStringTag]} of ${array.length}`;
}
