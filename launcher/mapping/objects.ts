/** NUMA nodes and GPUs as ranks are dealt to them. */
import type { Program, RankPlacement } from './map-ranks.ts';
import { refuse } from './refusal.ts';

/** GPUs that the program may use on the host: those that the allocation names, else all. */
function gpuNumbers({ hosts, topologies }: Program, host: number): readonly number[] {
  const slots = hosts[host];
  const found = topologies.get(slots?.name ?? '')?.gpus.map((_, index) => index) ?? [];
  return slots?.devices?.filter((device) => device < found.length) ?? found;
}

export function gpusOf(program: Program, host: number): number {
  return gpuNumbers(program, host).length;
}

function numaNumbers({ hosts, topologies }: Program, host: number): readonly number[] {
  const cores = topologies.get(hosts[host]?.name ?? '')?.cores ?? [];
  return [...new Set(cores.map((core) => core.numa))].toSorted((one, other) => one - other);
}

/** Ranks that each host is to get (-N, ppr), or null where its slots decide. Throws a FailureError (allocation) for a host without GPUs. */
export function perHostOf(program: Program): number[] | null {
  const { hosts, may, wish, request } = program;
  const { mapBy } = request;
  const { ranksPerHost } = wish;
  if (mapBy.by !== 'ppr' && ranksPerHost === null) return null;
  const [count, object] =
    mapBy.by === 'ppr'
      ? [mapBy.count, mapBy.object]
      : ranksPerHost === 'gpu'
        ? [1, 'gpu' as const]
        : [ranksPerHost ?? 0, 'node' as const];
  return hosts.map((host, index) => {
    if (may[index] !== true) return 0;
    if (object === 'node') return count;
    if (object === 'numa') return count * numaNumbers(program, index).length;
    const gpus = gpusOf(program, index);
    if (gpus > 0) return count * gpus;
    throw refuse(
      `${host.name} has no GPU to give ranks to`,
      'leave it out, or say a number: -N 4, or --map-by ppr:4:node',
    );
  });
}

/** What the host's rank number `index` is dealt to. */
export function objectsOf(program: Program, host: number, index: number): Pick<RankPlacement, 'numa' | 'gpu'> {
  const { mapBy } = program.request;
  const slot = mapBy.by === 'ppr' ? Math.floor(index / mapBy.count) : index;
  const object = mapBy.by === 'ppr' ? mapBy.object : mapBy.by;
  if (object === 'numa') return { numa: pick(numaNumbers(program, host), slot), gpu: null };
  if (object !== 'gpu' && program.wish.ranksPerHost !== 'gpu') return { numa: null, gpu: null };
  const gpu = pick(gpuNumbers(program, host), slot);
  const gpus = program.topologies.get(program.hosts[host]?.name ?? '')?.gpus;
  return { numa: gpu === null ? null : (gpus?.[gpu]?.numa ?? null), gpu };
}

function pick(numbers: readonly number[], slot: number): number | null {
  return numbers[slot % numbers.length] ?? null;
}
