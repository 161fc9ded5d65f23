/** All that follows at once from a change of tasks: those that can never run any more are skipped in the same commit. */
import { type EndedState, hasEnded } from '../model/states.ts';
import type { BatchSpec } from '../model/spec.ts';
import type { Task, TaskChange, TaskEdit } from '../model/task.ts';
import { Dependencies } from './dependencies.ts';
import { taskName } from './task-name.ts';

const BAD_ENDS: ReadonlySet<EndedState> = new Set(['failed', 'timed-out', 'lost']);

interface Transition {
  /** Tasks that end by it, beside those that were to change. */
  readonly skipped: readonly number[];
  /** Tasks whose standing may have changed and that do not end by it. */
  readonly perhapsReady: readonly number[];
  /** Running tasks that are to end, because the file says so where one fails. */
  readonly toCancel: readonly number[];
}

export class Transitions {
  readonly #spec: BatchSpec;
  readonly #now: (id: number) => Task;
  readonly #dependencies: Dependencies;
  /** Failed tasks of each job. */
  readonly #fails: number[];
  readonly #planned = new Map<number, Task>();

  /** `tasks`: as they are on the disk. */
  constructor(spec: BatchSpec, tasks: (id: number) => Task) {
    this.#spec = spec;
    this.#now = (id) => this.#planned.get(id) ?? tasks(id);
    this.#dependencies = new Dependencies(spec, this.#now);
    this.#fails = spec.jobs.map(
      (_, job) => this.#dependencies.tasksOf(job).filter((id) => endedBadly(this.#now(id))).length,
    );
  }

  get dependencies(): Dependencies {
    return this.#dependencies;
  }

  /** `commit` is called once, with all edits; what is planned counts from then on. */
  apply(first: readonly TaskEdit[], now: number, commit: (edits: readonly TaskEdit[]) => void): Transition {
    const edits = new Map<number, TaskChange>();
    const perhaps = new Set<number>();
    const toCancel = new Set<number>();
    const queue: TaskEdit[] = [...first];
    // The queue grows while it is gone through.
    for (const { id, change } of queue) {
      const before = this.#now(id);
      if (edits.has(id) && hasEnded(before.state)) continue;
      const after = { ...before, ...change };
      edits.set(id, { ...edits.get(id), ...change });
      this.#planned.set(id, after);
      for (const other of this.#dependencies.changed(after, before, after)) {
        perhaps.add(other);
        const task = this.#now(other);
        if (!isWaiting(task)) continue;
        const { standing, words } = this.#dependencies.standingOf(task);
        if (standing === 'impossible') queue.push(skip(other, words, now));
      }
      if (endedBadly(before) && !endedBadly(after)) this.#fails[after.job] = (this.#fails[after.job] ?? 1) - 1;
      if (endedBadly(after) && !endedBadly(before)) {
        for (const other of this.#endedBy(after)) {
          if (isWaiting(this.#now(other.id))) queue.push(skip(other.id, other.why, now));
          else if (other.running && !hasEnded(this.#now(other.id).state)) toCancel.add(other.id);
        }
      }
    }
    commit([...edits].map(([id, change]) => ({ id, change })));
    this.#planned.clear();
    const asked = new Set(first.map(({ id }) => id));
    const skipped = [...edits.keys()].filter((id) => !asked.has(id));
    return { skipped, perhapsReady: [...perhaps].filter((id) => isWaiting(this.#now(id))), toCancel: [...toCancel] };
  }

  /** What the failure of a task ends: the rest of its array, or of the batch. */
  *#endedBy(task: Task): Generator<{ readonly id: number; readonly why: string; readonly running: boolean }> {
    const fails = (this.#fails[task.job] ?? 0) + 1;
    this.#fails[task.job] = fails;
    const name = taskName(this.#spec, task);
    const { onFailure, jobs } = this.#spec;
    if (onFailure !== 'continue') {
      for (const [job] of jobs.entries())
        for (const id of this.#dependencies.tasksOf(job))
          yield { id, why: `${name} failed`, running: onFailure === 'stop' };
      return;
    }
    const maxFails = jobs[task.job]?.array?.maxFails ?? null;
    if (maxFails === null || fails < maxFails) return;
    for (const id of this.#dependencies.tasksOf(task.job))
      yield { id, why: `${fails} tasks of ${jobs[task.job]?.name ?? 'the array'} failed`, running: false };
  }
}

function endedBadly({ state }: Task): boolean {
  return hasEnded(state) && BAD_ENDS.has(state);
}

function isWaiting({ state }: Task): boolean {
  return state === 'held' || state === 'queued';
}

function skip(id: number, message: string, now: number): TaskEdit {
  return { id, change: { state: 'skipped', endedAt: now, message } };
}
