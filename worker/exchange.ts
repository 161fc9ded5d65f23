/** Sends and receives that a program begins together also progress together, so that two ranks that both send first do not wait for ever. */
import type { CommHandle, Native, Transfer } from './engine/native.ts';

/** Collects transfers until the program's current step is over (a microtask), or until another operation has to come after them. */
export class ExchangeQueue {
  readonly #native: Native;
  readonly #handle: CommHandle;
  #transfers: Transfer[] = [];
  #ended: PromiseWithResolvers<void> = Promise.withResolvers();

  constructor(native: Native, handle: CommHandle) {
    this.#native = native;
    this.#handle = handle;
  }

  /** Resolves when this transfer, and those that began with it, have ended. */
  add(transfer: Transfer): Promise<void> {
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
    const ended = this.#ended;
    this.#transfers = [];
    try {
      this.#native.exchange(this.#handle, transfers).then(ended.resolve, ended.reject);
    } catch (error) {
      ended.reject(error);
    }
  }
}
