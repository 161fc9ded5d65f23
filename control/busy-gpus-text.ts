/** Who holds GPUs that a job was to have, in words. */
import type { BusyGpu } from './messages/gpu.ts';

/** "GPU 3 is held by job 1a2b3c of alice (pid 4711)". */
export function busyGpuText(gpu: BusyGpu): string {
  const { index, uuid, job, pid, user } = gpu;
  const name = index === null ? `MIG instance ${uuid ?? ''}` : `GPU ${index}`;
  const holder = job === null ? 'a process that is no job of ncclrun' : `job ${job}`;
  return `${name} is held by ${holder}${user === null ? '' : ` of ${user}`}${pid === null ? '' : ` (pid ${pid})`}`;
}
