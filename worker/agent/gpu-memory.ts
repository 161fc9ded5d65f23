/** Free memory of a host's GPUs, and the processes that hold the rest. */
import type { FreeGpuMemory, HostGpu, MemoryHolder } from '../../control/messages/gpu.ts';
import type { Native, NvmlMemory } from '../engine/native.ts';
import { readText } from '../topology/system-files.ts';
import { sysfsAddress } from '../topology/walk.ts';
import { hasJobId } from './orphans.ts';

/** NVML's answer about all visible GPUs; empty if NVML is unavailable. */
export type NvmlAnswer = readonly NvmlMemory[];

export async function askNvml(native: Pick<Native, 'gpuMemory'>): Promise<NvmlAnswer> {
  const answer = await native.gpuMemory();
  return typeof answer === 'string' ? [] : answer;
}

/** Selects the memory of those GPUs. */
export function memoryOf(answer: NvmlAnswer, gpus: Iterable<HostGpu>): FreeGpuMemory[] {
  const byAddress = new Map(answer.map((one) => [sysfsAddress(one.busId), one]));
  const wanted = new Map(Array.from(gpus, ({ index, address }) => [index, address]));
  return Array.from(wanted).flatMap(([gpu, address]) => {
    const found = byAddress.get(address ?? '');
    return found === undefined
      ? []
      : [{ gpu, total: found.total, free: found.free, holders: largestFirst(found.processes).map(holderOf) }];
  });
}

/** The answer without the memory of this job's own ranks, which may have started during the query. */
export function withoutJob(answer: NvmlAnswer, jobId: string): NvmlAnswer {
  return answer.map((one) => {
    const ours = one.processes.filter(({ pid }) => hasJobId(pid, jobId));
    const used = ours.reduce((sum, process) => sum + (process.used ?? 0), 0);
    return { ...one, free: one.free + used, processes: one.processes.filter((process) => !ours.includes(process)) };
  });
}

function largestFirst(processes: NvmlMemory['processes']): NvmlMemory['processes'] {
  return processes.toSorted((one, other) => (other.used ?? 0) - (one.used ?? 0));
}

function holderOf({ pid, used }: NvmlMemory['processes'][number]): MemoryHolder {
  const program = readText('/', `proc/${pid}/comm`);
  const uid = /^Uid:\s*(\d+)/mu.exec(readText('/', `proc/${pid}/status`))?.[1];
  return { pid, program: program === '' ? null : program, user: uid === undefined ? null : userName(uid), used };
}

/** Those of a directory service go by their number. */
export function userName(uid: string): string {
  const line = readText('/', 'etc/passwd')
    .split('\n')
    .find((one) => one.split(':')[2] === uid);
  return line?.split(':')[0] ?? uid;
}
