import type { HostGpu } from '../../control/messages/gpu.ts';

interface NamedRank {
  readonly rank: number;
  readonly host: string;
  readonly pid: number;
  readonly gpu?: HostGpu | null;
}

/** `rank 3 on node2 (pid 4711, GPU 3 at 0000:1b:00.0)`. */
export function rankName({ rank, host, pid, gpu }: NamedRank): string {
  return `rank ${rank} on ${host} (pid ${pid}${gpu === undefined || gpu === null ? '' : `, ${gpuName(gpu)}`})`;
}

function gpuName({ index, address }: HostGpu): string {
  return `GPU ${index}${address === null ? '' : ` at ${address}`}`;
}
