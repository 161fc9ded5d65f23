/** The tasks that may start as far as others are concerned, in the queue for hosts. An array with `max_parallel` has no more of them there than may run. */
import type { Placement } from '../model/capacity.ts';
import type { JobSpec } from '../model/spec.ts';
import type { Task } from '../model/task.ts';
import type { TaskQueue } from '../schedule/queue.ts';
import type { WaitingTask } from '../schedule/task.ts';
import { whyText } from '../schedule/why-text.ts';
import type { Claim } from '../store/store.ts';

/** Tasks gain a point of priority each hour that they wait. */
const BETWEEN_LOOKS_MS = 60_000;

interface Offered {
  readonly task: Task;
  readonly job: JobSpec;
}

export class Waiting {
  readonly #queue: TaskQueue;
  readonly #nameOf: (task: Task) => string;
  /** In the queue or running, by name. */
  readonly #ids = new Map<string, number>();
  /** In the queue. */
  readonly #queued = new Set<number>();
  readonly #running = new Set<number>();
  /** Job → tasks in the queue or running, where that is limited. */
  readonly #counts = new Map<number, number>();
  /** Job → tasks beyond its limit, in their order. */
  readonly #backlogs = new Map<number, Map<number, Offered>>();

  /** `nameOf`: as users read it where one task waits for another. */
  constructor(queue: TaskQueue, nameOf: (task: Task) => string) {
    this.#queue = queue;
    this.#nameOf = nameOf;
  }

  /** Once it is there already, nothing changes. */
  add(task: Task, job: JobSpec): void {
    if (this.#queued.has(task.id) || this.#running.has(task.id)) return;
    const limit = job.array?.maxParallel ?? null;
    if (limit === null) return this.#enqueue({ task, job });
    const count = this.#counts.get(task.job) ?? 0;
    if (count < limit) {
      this.#counts.set(task.job, count + 1);
      return this.#enqueue({ task, job });
    }
    const backlog = this.#backlogs.get(task.job) ?? new Map<number, Offered>();
    backlog.set(task.id, { task, job });
    this.#backlogs.set(task.job, backlog);
    return undefined;
  }

  /** It may not start any more; it may not be there. */
  remove(task: Task): void {
    this.#backlogs.get(task.job)?.delete(task.id);
    if (!this.#queued.delete(task.id)) return;
    this.#queue.remove(this.#nameOf(task));
    this.#makeRoom(task);
  }

  /** It runs already. */
  started(task: Task, job: JobSpec, placement: Placement, startedAt: number): void {
    if (job.array?.maxParallel !== undefined) this.#counts.set(task.job, (this.#counts.get(task.job) ?? 0) + 1);
    this.#queue.add(this.#waitingTask({ task, job }));
    this.#queue.started(this.#nameOf(task), placement, startedAt);
    this.#running.add(task.id);
  }

  ended(task: Task): void {
    if (!this.#running.delete(task.id)) return;
    this.#queue.ended(this.#nameOf(task));
    this.#makeRoom(task);
  }

  /** Those that start now: they have their hosts from now on. */
  next(now: number): Claim[] {
    return this.#queue.next(now).map(({ id, placement }) => {
      const number = this.#ids.get(id);
      if (number === undefined) throw new Error(`no task called ${id} waits`);
      this.#queued.delete(number);
      this.#running.add(number);
      return { id: number, placement };
    });
  }

  /** When to look again though nothing has happened: a host comes back, or a task has waited long enough to be first. Null: nothing waits. */
  nextAt(now: number): number | null {
    if (this.#queued.size === 0) return null;
    return Math.min(this.#queue.wakeAt() ?? Number.POSITIVE_INFINITY, now + BETWEEN_LOOKS_MS);
  }

  quarantine(host: string, until: number, now: number): void {
    if (until > now) this.#queue.holdHost(host, until);
    else this.#queue.releaseHost(host);
  }

  /** A job that is not of this batch has a slot's GPU. */
  leaveAlone(host: string, slot: number, now: number, until: number): void {
    this.#queue.holdSlot(host, slot, now, until);
  }

  /** What a waiting task waits for; empty for one that is not in the queue. */
  why(task: Task, now: number): string {
    if (this.#backlogs.get(task.job)?.has(task.id) === true) return 'as many of its array run as may';
    return this.#queued.has(task.id) ? whyText(this.#queue.why(this.#nameOf(task), now), now) : '';
  }

  #enqueue(offered: Offered): void {
    this.#queued.add(offered.task.id);
    this.#queue.add(this.#waitingTask(offered));
  }

  /** A task of the job has left the queue or has ended. */
  #makeRoom({ job }: Task): void {
    const count = this.#counts.get(job);
    if (count === undefined) return;
    this.#counts.set(job, count - 1);
    const backlog = this.#backlogs.get(job);
    const [next] = backlog?.values() ?? [];
    if (next === undefined) return;
    backlog?.delete(next.task.id);
    this.add(next.task, next.job);
  }

  #waitingTask({ task, job }: Offered): WaitingTask {
    const { demand, priority, timeLimitSeconds } = job;
    const id = this.#nameOf(task);
    this.#ids.set(id, task.id);
    return { id, demand, priority, timeLimitSeconds, order: task.id, queuedAt: task.queuedAt };
  }
}
