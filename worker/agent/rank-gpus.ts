/** Assignment of a host's GPUs to its ranks. */
import type { HostGpu } from '../../control/messages/gpu.ts';
import type { OrderedProgram, OrderedRank, Placement } from '../../control/messages/link.ts';
import { type VisibleGpu, visibleGpus } from '../topology/gpus.ts';

/**
 * GPUs by rank. `gpus` are those visible to a program here; `own` is this host's environment. Omits ranks on the host device and on MIG
 * instances, whose index the driver does not report.
 */
export function gpusOfRanks(
  { ranks, programs }: Placement,
  gpus: readonly VisibleGpu[],
  own: NodeJS.ProcessEnv,
): ReadonlyMap<number, HostGpu> {
  const found = ranks.flatMap((ordered, localRank) => {
    const program = programs[ordered.program];
    const gpu = gpuOfRank(ordered, localRank, gpus, program);
    if (gpu === undefined || gpu.index === null || isOnHost(program, own)) return [];
    return [[ordered.rank, { index: gpu.index, address: gpu.address }] as const];
  });
  return new Map(found);
}

/**
 * GPUs and MIG instances that the ranks of a placement are to have for themselves. `before`: local ranks of the machine ahead of them; `gpus` as for
 * gpusOfRanks.
 */
export function lockedGpus(
  { ranks, programs }: Placement,
  before: number,
  gpus: readonly VisibleGpu[],
): readonly VisibleGpu[] {
  if (gpus.length === 0) return [];
  return ranks.flatMap((ordered, index) => {
    const program = programs[ordered.program];
    return isOnHost(program, process.env) ? [] : (gpuOfRank(ordered, before + index, gpus, program) ?? []);
  });
}

function isOnHost(program: OrderedProgram | undefined, own: NodeJS.ProcessEnv): boolean {
  return (program?.environment['NCCLRUN_DEVICE'] ?? own['NCCLRUN_DEVICE']) === 'host';
}

/** As gpuEnvironment deals them. */
export function gpuOfRank(
  { gpu, visibleGpus: numbers }: OrderedRank,
  localRank: number,
  gpus: readonly VisibleGpu[],
  program: OrderedProgram | undefined,
): VisibleGpu | undefined {
  const given = numbers === null ? program?.environment['CUDA_VISIBLE_DEVICES'] : undefined;
  if (given !== undefined) {
    const seen = visibleGpus(given);
    return seen[localRank % Math.max(seen.length, 1)];
  }
  const seen = numbers ?? gpus.map((_, index) => index);
  const own = gpu !== null && seen.includes(gpu) ? gpu : seen[localRank % Math.max(seen.length, 1)];
  return own === undefined ? undefined : gpus[own];
}
