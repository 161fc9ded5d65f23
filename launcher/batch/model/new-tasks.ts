import type { BatchSpec } from './spec.ts';
import type { Task } from './task.ts';

/** The tasks of jobs from the `first` on, as they are when they are submitted; `from`: the number of the first of them. */
export function newTasks(spec: BatchSpec, queuedAt: number, first = 0, from = 0): Task[] {
  return spec.jobs
    .flatMap(({ array, held }, job) => {
      const count = job < first ? 0 : (array?.tasks.length ?? 1);
      return Array.from({ length: count }, (_, position) => ({ job, position, held }));
    })
    .map(({ job, position, held }, index) => ({
      id: from + index,
      job,
      position,
      state: held ? 'held' : 'queued',
      attempt: 0,
      errors: 0,
      interruptions: 0,
      hostDeaths: 0,
      queuedAt,
      notBefore: 0,
      startedAt: null,
      endedAt: null,
      exitCode: null,
      message: '',
      cancelAsked: false,
    }));
}
