/** What users call a task: `train`, or `train[3]` for the one with index 3 of an array. */
import type { BatchSpec } from '../model/spec.ts';
import type { Task } from '../model/task.ts';

export function taskName(spec: BatchSpec, { job, position }: Pick<Task, 'job' | 'position'>): string {
  const one = spec.jobs[job];
  const index = one?.array?.tasks[position]?.index;
  return index === undefined ? (one?.name ?? `job ${job}`) : `${one?.name ?? job}[${index}]`;
}
