/** GPUs were asked for each task: the step of the agents, with one task on each host, has to ask for all of a host's. */
import { parseTasksPerNode } from '../../allocation/grammar/tasks-per-node.ts';
import type { Environment } from '../../allocation/managed/manager.ts';

/** An option for srun; none where Slurm gives the step all GPUs anyway, or hosts have different numbers of tasks. */
export function gpusOption(environment: Environment): string[] {
  const tasks = sameTasks(environment['SLURM_TASKS_PER_NODE'] ?? '');
  if (tasks === null) return [];
  // `1`, `h200:1`
  const [, kind = '', each] = /^([\w-]+:)?([1-9][0-9]{0,4})$/.exec(environment['SLURM_GPUS_PER_TASK'] ?? '') ?? [];
  if (each !== undefined) return [`--gpus-per-node=${kind}${Number(each) * tasks}`];
  const perGpu = Number(/^[1-9][0-9]{0,4}$/.exec(environment['SLURM_NTASKS_PER_GPU'] ?? '')?.[0] ?? 0);
  return perGpu === 0 ? [] : [`--gpus-per-node=${Math.ceil(tasks / perGpu)}`];
}

/** Of every host; null where they differ or are not known. */
function sameTasks(text: string): number | null {
  if (text === '') return null;
  const counts = parseTasksPerNode({ text, offset: 0 }, { source: 'SLURM_TASKS_PER_NODE', line: 1, text });
  const [first = null] = counts;
  return counts.every((count) => count === first) ? first : null;
}
