/** When and where tasks will run if nothing unforeseen happens: the queue's own decisions, in simulated time. */
import type { Placement } from '../model/capacity.ts';
import { Heap, type HeapItem } from './heap.ts';
import type { TaskQueue } from './queue.ts';
import { limitOf, type WaitingTask } from './task.ts';

export interface ForecastTask {
  readonly id: string;
  /** In milliseconds; null: it never starts, or waits for a task of which no end is known. */
  readonly startAt: number | null;
  /** null: not known. */
  readonly endAt: number | null;
  /** null if it does not start. */
  readonly placement: Placement | null;
}

interface Expectation {
  /** How long a task will run, if it is known; else its time limit counts. */
  readonly seconds: (id: string) => number | null;
  /** Tasks that begin to wait when a task has ended, as those that depend on it. */
  readonly released?: (id: string, at: number) => readonly WaitingTask[];
}

interface End extends HeapItem {
  readonly id: string;
  readonly at: number;
}

/** Tasks in the order of their starts, running ones first, those that do not start last. */
export function forecast(queue: TaskQueue, now: number, { seconds, released }: Expectation): ForecastTask[] {
  const future = queue.copy();
  const limits = new Map(queue.waitingTasks.map((task) => [task.id, limitOf(task)]));
  const ends = new Heap<End>((one, other) => one.at < other.at || (one.at === other.at && one.id < other.id));
  const found: ForecastTask[] = [];
  const begin = (
    id: string,
    placement: Placement,
    times: { readonly startAt: number; readonly endBy: number },
  ): void => {
    const expected = seconds(id);
    const at = Math.max(now, Math.min(times.endBy, times.startAt + (expected ?? Infinity) * 1000));
    if (at !== Infinity) ends.add({ id, at, heapIndex: -1 });
    found.push({ id, startAt: times.startAt, endAt: at === Infinity ? null : at, placement });
  };
  for (const { id, placement, startedAt, endBy } of queue.runningTasks)
    begin(id, placement, { startAt: startedAt, endBy });
  for (let time: number | null = now; time !== null; ) {
    for (let end = ends.first; end !== undefined && end.at <= time; end = ends.first) {
      ends.remove(end);
      future.ended(end.id);
      for (const task of released?.(end.id, time) ?? []) {
        limits.set(task.id, limitOf(task));
        future.add(task);
      }
    }
    for (const { id, placement } of future.next(time))
      begin(id, placement, { startAt: time, endBy: time + (limits.get(id) ?? Infinity) });
    time = earliest(ends.first?.at ?? null, future.wakeAt());
  }
  const others = future.waitingTasks.map(({ id }) => ({ id, startAt: null, endAt: null, placement: null }));
  return [...found, ...others];
}

function earliest(one: number | null, other: number | null): number | null {
  if (one === null || other === null) return one ?? other;
  return Math.min(one, other);
}
