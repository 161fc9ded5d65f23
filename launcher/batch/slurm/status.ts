/** What `ncclrun jobs` shows of a batch on Slurm. */
import { taskName } from '../run/task-name.ts';
import type { Task } from '../model/task.ts';
import type { BatchStatus, TaskStatus } from '../serve/request.ts';
import type { BatchDirectory } from '../state/directory.ts';
import type { Store } from '../store/store.ts';
import { hostsOf } from './follow/node-names.ts';
import { slurmOutputOf } from './script/paths.ts';

interface SlurmStatusFacts {
  readonly directory: BatchDirectory;
  readonly store: Store;
  /** Hosts by task, as Slurm writes them. */
  readonly places: ReadonlyMap<number, string>;
  /** Process that watches the batch; null: none does. */
  readonly watcher: number | null;
  /** What the user should know beside it; empty: nothing. */
  readonly notice: string;
  /** What a waiting task waits for. */
  why(this: void, task: Task): string;
}

export function slurmStatusOf({ directory, store, places, watcher, notice, why }: SlurmStatusFacts): BatchStatus {
  const { batch, spec, tasks } = store;
  const statusOf = (task: Task): TaskStatus => ({
    name: taskName(spec, task),
    state: task.state,
    attempt: task.attempt,
    hosts: hostsOf(places.get(task.id) ?? '', spec.jobs[task.job]?.demand),
    output: task.attempt === 0 ? null : slurmOutputOf(directory.id, spec, task, task.attempt).path,
    message:
      task.state === 'queued' ? [task.message, why(task)].filter((text) => text !== '').join('; ') : task.message,
    queuedAt: task.queuedAt,
    startedAt: task.startedAt,
    endedAt: task.endedAt,
    exitCode: task.exitCode,
  });
  return {
    schemaVersion: 1,
    id: directory.id,
    file: batch?.file ?? '',
    via: 'slurm',
    scheduler: watcher,
    createdAt: batch?.created_at ?? 0,
    endedAt: batch?.ended_at ?? null,
    tasks: tasks.map(statusOf),
    hosts: [],
    ...(notice === '' ? {} : { notice }),
  };
}
