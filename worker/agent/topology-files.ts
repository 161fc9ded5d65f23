/**
 * NCCL_TOPO_FILE and NCCL_TOPO_DUMP_FILE: the first is read before ranks start, the other written when they do, once per host. A job that sets
 * neither loads nothing of this but the question whether it does.
 */
import { resolve } from 'node:path';
import type { OrderedProgram, OrderedRank, Placement } from '../../control/messages/link.ts';
import type { Element } from '../../control/topology/element.ts';
import type { Native } from '../engine/native.ts';
import { type VisibleGpu, visibleGpus } from '../topology/gpus.ts';

export interface TopologyFiles {
  /** Absolute; null: not wanted. */
  readonly read: string | null;
  readonly dump: string | null;
  /** What ranks find in their environment, as far as it says something of the topology. */
  readonly environment: NodeJS.ProcessEnv;
}

/** Null if neither is set, by -x for some program or in this host's own environment. */
export function topologyFiles({ programs }: Placement, own: NodeJS.ProcessEnv): TopologyFiles | null {
  const [read, dump] = ['NCCL_TOPO_FILE', 'NCCL_TOPO_DUMP_FILE'].map((name) => {
    const program = programs.find(({ environment }) => (environment[name] ?? own[name] ?? '') !== '');
    return program === undefined
      ? null
      : resolve(program.workingDirectory, program.environment[name] ?? own[name] ?? '');
  });
  if ((read ?? null) === null && (dump ?? null) === null) return null;
  return { read: read ?? null, dump: dump ?? null, environment: { ...own, ...programs[0]?.environment } };
}

/** Null where none is named. @throws TopologyError with file, line, column and reason */
export async function readHostTopology({ read }: TopologyFiles): Promise<Element | null> {
  if (read === null) return null;
  const { readTopologyFile } = await import('../topology/file.ts');
  return readTopologyFile(read);
}

/** What is to be told: what could not be found out or written. Null: nothing is written. */
export async function dumpHostTopology(
  native: Native,
  files: TopologyFiles,
  file: Element | null,
  placement: Placement,
): Promise<string | null> {
  if (files.dump === null) return null;
  const { dumpTopology, hostTopologySystem } = await import('../topology/file.ts');
  const ranks = ranksByGpu(placement, visibleGpus(), files.environment);
  const rankOf = ({ busId }: { readonly busId: string }) => ranks.get(busId);
  try {
    const { system, notes } = hostTopologySystem(native, file, { environment: files.environment, rankOf });
    dumpTopology(files.dump, system);
    return notes.length === 0 ? null : `${files.dump}: ${notes.join('; ')}`;
  } catch (error) {
    return `NCCL_TOPO_DUMP_FILE is not written: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** The first rank on each GPU, by the GPU's PCI address. `gpus`: what a program sees here. */
export function ranksByGpu(
  { ranks, programs }: Placement,
  gpus: readonly VisibleGpu[],
  environment: NodeJS.ProcessEnv,
): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  if (environment['NCCLRUN_DEVICE'] === 'host') return found;
  for (const [localRank, ordered] of ranks.entries()) {
    const address = gpuOf(ordered, localRank, gpus, programs[ordered.program])?.address?.toLowerCase();
    if (address !== undefined && !found.has(address)) found.set(address, ordered.rank);
  }
  return found;
}

/** As gpuEnvironment deals them. */
function gpuOf(
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
