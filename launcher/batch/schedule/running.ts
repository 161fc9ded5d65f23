/** The running tasks in the order of their ends at the latest. */
import type { Placement } from '../model/capacity.ts';

export interface RunningTask {
  readonly id: string;
  readonly placement: Placement;
  readonly startedAt: number;
  /** When its time limit ends it, in milliseconds; Infinity without one. */
  readonly endBy: number;
}

export class RunningTasks {
  readonly #byId = new Map<string, RunningTask>();
  #ascending: RunningTask[] = [];

  get size(): number {
    return this.#byId.size;
  }

  get(id: string): RunningTask | undefined {
    return this.#byId.get(id);
  }

  add(task: RunningTask): void {
    this.#byId.set(task.id, task);
    this.#ascending.splice(this.#firstAfter(task.endBy), 0, task);
  }

  remove(task: RunningTask): void {
    this.#byId.delete(task.id);
    let index = this.#firstAfter(task.endBy) - 1;
    while (index >= 0 && this.#ascending[index] !== task) index -= 1;
    if (index >= 0) this.#ascending.splice(index, 1);
  }

  /** Those without a time limit are the last. */
  byEnd(): readonly RunningTask[] {
    return this.#ascending;
  }

  /** Index of the first one that ends after `time`. */
  #firstAfter(time: number): number {
    let [low, high] = [0, this.#ascending.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#ascending[middle]?.endBy ?? Infinity) > time) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
