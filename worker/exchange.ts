/** Sends and receives that a program begins together also progress together, so that two ranks that both send first do not wait for ever. */
import type { OperationPromises } from './operation-promises.ts';
import type { Native, Operation } from './engine/native.ts';

/** Collects transfers until the program's current step is over (a microtask), or until another operation has to come after them. */
export class ExchangeQueue {
  readonly #native: Native;
  readonly #promises: OperationPromises;
  #transfers: Operation[] = [];
  #ended: PromiseWithResolvers<void> = Promise.withResolvers();

  constructor(native: Native, promises: OperationPromises) {
    this.#native = native;
    this.#promises = promises;
  }

  /** Resolves when this transfer, and those that began with it, have ended. */
  add(transfer: Operation): Promise<void> {
    if (this.#transfers.length === 0) {
      this.#ended = Promise.withResolvers();
      queueMicrotask(() => this.flush());
    }
    this.#transfers.push(transfer);
    return this.#ended.promise;
  }

  flush(): void {
    if (this.#transfers.length === 0) return;
    const transfers = this.#transfers;
    const { resolve, reject } = this.#ended;
    this.#transfers = [];
    try {
      const [number = 0] = this.#native.group(transfers);
      const waits = this.#promises.of(number, ...transfers);
      if (waits === null) resolve();
      else waits.then(resolve, reject);
    } catch (error) {
      reject(error);
    }
  }
}
