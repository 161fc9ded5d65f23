/** Settles the promises of a communicator's operations. */
import { monotonicMs } from '../control/clock.ts';
import type { Operation, Watcher } from './engine/native.ts';

/** A pending operation, or several that begin together. */
interface PendingOperations {
  readonly number: number;
  /** Keeps the operations' arrays, which the engine uses, from the garbage collector. */
  readonly operations: readonly Operation[];
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * An operation that ended during its call needs no tick of the event loop. A program that awaits nothing else would starve timers, sockets and
 * signals, so an operation yields to the event loop from time to time. Reading the clock takes time too, so only every 16th operation reads it.
 */
const MS_PER_TICK = 2;
const OPERATIONS_PER_CLOCK_READ = 16;
let untilClockRead = OPERATIONS_PER_CLOCK_READ;
let yieldedAt = 0;

function yieldIfDue(): Promise<void> | null {
  if (--untilClockRead > 0) return null;
  untilClockRead = OPERATIONS_PER_CLOCK_READ;
  const now = monotonicMs();
  if (now - yieldedAt < MS_PER_TICK) return null;
  yieldedAt = now;
  return new Promise((resolve) => setImmediate(resolve));
}

/** Promises of the operations of one communicator, which end in the order in which they begin. */
export class OperationPromises {
  #pending: PendingOperations[] = [];
  #first = 0;

  /** Watcher for commWatch. It keeps only pending operations from the garbage collector. */
  readonly watcher: Watcher = (ended, failures) => {
    const errors = new Map(failures);
    for (let next = this.#pending[this.#first]; next !== undefined && next.number <= ended; ) {
      const error = errors.get(next.number);
      if (error === undefined) next.resolve();
      else next.reject(error);
      next = this.#pending[++this.#first];
    }
    if (this.#first < this.#pending.length / 2) return;
    this.#pending.splice(0, this.#first);
    this.#first = 0;
  };

  /** Returns the promise of operations that have just begun, or null if the caller need not wait. `number`: native code's number of them; 0 if they have ended. */
  of(number: number, ...operations: readonly Operation[]): Promise<void> | null {
    if (number === 0) return yieldIfDue();
    return new Promise((resolve, reject) => {
      this.#pending.push({ number, operations, resolve, reject });
    });
  }
}
