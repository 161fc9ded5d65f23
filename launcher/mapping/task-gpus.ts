/** Which GPUs of its host a rank may see, where the resource manager has given each of its tasks some. */
import type { HostSlots, MappedRank } from '../model/types.ts';

/** Positions among the GPUs of the job on that host; null: all of them. */
export function gpusOfTask(
  { localRank, localSize }: Pick<MappedRank, 'localRank' | 'localSize'>,
  { taskGpus, gpuCount, devices }: Pick<HostSlots, 'taskGpus' | 'gpuCount' | 'devices'>,
): readonly number[] | null {
  if (taskGpus === undefined) return null;
  const task = devices?.[localRank] ?? localRank;
  const within = (gpu: number): number => (gpuCount === undefined || gpuCount === 0 ? gpu : gpu % gpuCount);
  if (taskGpus.type === 'perTask')
    return Array.from({ length: taskGpus.gpus }, (_, index) => within(task * taskGpus.gpus + index));
  if (localSize === 1) return null; // as srun, which does not bind the only task of a host
  if (taskGpus.type === 'single') return [within(Math.floor(task / taskGpus.tasks))];
  return taskGpus.turns[task % taskGpus.turns.length] ?? null;
}
