/** What `ncclrun jobs` is told of a batch. */
import type { HostCapacity } from '../model/capacity.ts';
import type { Task } from '../model/task.ts';
import type { BatchStatus, TaskStatus } from '../serve/request.ts';
import type { BatchDirectory } from '../state/directory.ts';
import type { Store } from '../store/store.ts';
import { outputPathOf } from './attempt-plans.ts';
import { taskName } from './task-name.ts';

interface StatusFacts {
  readonly directory: BatchDirectory;
  readonly store: Store;
  /** Empty where no scheduler runs. */
  readonly hosts: readonly HostCapacity[];
  /** null: none runs. */
  readonly scheduler: number | null;
  /** What a waiting task waits for. */
  why(this: void, task: Task): string;
}

export function batchStatusOf({ directory, store, hosts, scheduler, why }: StatusFacts): BatchStatus {
  const { batch, spec, tasks } = store;
  const placements = store.latestPlacements();
  const statusOf = (task: Task): TaskStatus => {
    const placement = placements.get(task.id) ?? [];
    return {
      name: taskName(spec, task),
      state: task.state,
      attempt: task.attempt,
      hosts: placement.map(({ host, ranks }) => ({ name: host, ranks })),
      output: task.attempt === 0 ? null : outputPathOf(directory, spec, task).path,
      message:
        task.state === 'queued' ? [task.message, why(task)].filter((text) => text !== '').join('; ') : task.message,
      queuedAt: task.queuedAt,
      startedAt: task.startedAt,
      endedAt: task.endedAt,
      exitCode: task.exitCode,
    };
  };
  const used = new Map<string, number>();
  for (const { id, state } of tasks) {
    if (state !== 'claimed' && state !== 'running') continue;
    for (const { host, slots } of placements.get(id) ?? []) used.set(host, (used.get(host) ?? 0) + slots.length);
  }
  const quarantines = new Map(store.hosts.map((row) => [row.name, row]));
  return {
    schemaVersion: 1,
    id: directory.id,
    file: batch?.file ?? '',
    scheduler,
    createdAt: batch?.created_at ?? 0,
    endedAt: batch?.ended_at ?? null,
    tasks: tasks.map(statusOf),
    hosts: hosts.map(({ name, slots }) => ({
      name,
      slots: slots.length,
      used: used.get(name) ?? 0,
      quarantinedUntil: quarantines.get(name)?.quarantined_until ?? null,
      reason: quarantines.get(name)?.reason ?? '',
    })),
  };
}
