/** How the promises of a communicator's operations settle. */
import { monotonicMs } from '../control/clock.ts';
import type { Operation, Watcher } from './engine/native.ts';

/** An operation, or several that begin together, under way. */
interface PendingOperations {
  readonly number: number;
  /** The engine uses its arrays: they must not be collected. */
  readonly operations: readonly Operation[];
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * What ended during its call needs no turn of the event loop. So that timers, sockets and signals have theirs in a program that awaits
 * nothing else, an operation waits for one from time to time. The clock costs something too, so few operations look at it.
 */
const MS_PER_TICK = 2;
const OPERATIONS_PER_LOOK = 16;
let untilLook = OPERATIONS_PER_LOOK;
let yieldedAt = 0;

function yieldIfDue(): Promise<void> | null {
  if (--untilLook > 0) return null;
  untilLook = OPERATIONS_PER_LOOK;
  const now = monotonicMs();
  if (now - yieldedAt < MS_PER_TICK) return null;
  yieldedAt = now;
  return new Promise((resolve) => setImmediate(resolve));
}

/** Of one communicator, whose operations end in the order in which they begin. */
export class Endings {
  #pending: PendingOperations[] = [];
  #first = 0;

  /** For commWatch. It keeps nothing but what is under way from the garbage collector. */
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

  /** `number` is what native code calls operations that have just begun; 0 if they have ended. null: nothing has to be awaited. */
  of(number: number, ...operations: readonly Operation[]): Promise<void> | null {
    if (number === 0) return yieldIfDue();
    return new Promise((resolve, reject) => {
      this.#pending.push({ number, operations, resolve, reject });
    });
  }
}
