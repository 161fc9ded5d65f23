/**
 * What this host is, for the planner and for files: NCCL_TOPO_FILE and NCCL_GRAPH_FILE are read before ranks start, NCCL_TOPO_DUMP_FILE is
 * written when they do, once per host. A job without GPUs that sets none of them loads nothing of this but the question whether it does.
 */
import { resolve } from 'node:path';
import type { OrderedProgram, Placement } from '../../control/messages/link.ts';
import type { Element } from '../../control/topology/element.ts';
import type { Native } from '../engine/native.ts';
import { type VisibleGpu, visibleGpus } from '../topology/gpus.ts';
import type { OwnMachine } from './bootstrap-service.ts';
import { gpuOfRank } from './rank-gpus.ts';
import { messageOf } from '../../control/message-of.ts';

export interface TopologyFiles {
  /** Absolute; null: not wanted. */
  readonly read: string | null;
  readonly dump: string | null;
  readonly graphs: string | null;
  readonly dumpGraphs: string | null;
  /** The ranks' environment variables about the topology. */
  readonly environment: NodeJS.ProcessEnv;
  /** Ranks may use GPUs. */
  readonly onGpus: boolean;
}

/** Null if nothing is wanted: no file is set, by -x for some program or in this host's own environment, and there are no GPUs. */
export function topologyFiles(
  { programs }: { readonly programs: readonly Pick<OrderedProgram, 'environment' | 'workingDirectory'>[] },
  own: NodeJS.ProcessEnv,
  gpus: readonly VisibleGpu[] = visibleGpus(),
): TopologyFiles | null {
  const pathOf = (name: string): string | null => {
    const program = programs.find(({ environment }) => (environment[name] ?? own[name] ?? '') !== '');
    return program === undefined
      ? null
      : resolve(program.workingDirectory, program.environment[name] ?? own[name] ?? '');
  };
  const environment = { ...own, ...programs[0]?.environment };
  const files = {
    read: pathOf('NCCL_TOPO_FILE'),
    dump: pathOf('NCCL_TOPO_DUMP_FILE'),
    graphs: pathOf('NCCL_GRAPH_FILE'),
    dumpGraphs: pathOf('NCCL_GRAPH_DUMP_FILE'),
  };
  const onGpus = gpus.length > 0 && environment['NCCLRUN_DEVICE'] !== 'host';
  const isWanted = onGpus || files.read !== null || files.dump !== null || files.graphs !== null;
  return isWanted ? { ...files, environment, onGpus } : null;
}

/** This host's topology from files. */
interface GivenTopology {
  readonly file: Element | null;
  readonly graphs: Element | null;
}

/** A file that a variable names is not what it should be: file, line, column and reason. */
export class VariableError extends Error {
  override readonly name = 'VariableError';
  readonly remedy: string;

  constructor(variable: string, error: unknown) {
    super(`${variable}: ${messageOf(error)}`);
    this.remedy = `correct the file, or unset ${variable}`;
  }
}

/** @throws VariableError */
export async function readGiven({ read, graphs }: TopologyFiles): Promise<GivenTopology> {
  if (read === null && graphs === null) return { file: null, graphs: null };
  const { readGraphsFile, readTopologyFile } = await import('../topology/file.ts');
  return {
    file: readNamed('NCCL_TOPO_FILE', read, readTopologyFile),
    graphs: readNamed('NCCL_GRAPH_FILE', graphs, readGraphsFile),
  };
}

function readNamed(variable: string, path: string | null, reader: (path: string) => Element): Element | null {
  try {
    return path === null ? null : reader(path);
  } catch (error) {
    throw new VariableError(variable, error);
  }
}

export const NO_MACHINE: OwnMachine = () => null;

/**
 * Returns this host's topology for the planner: for ranks on GPUs the detected one, for ranks on processors the one of a file. Detection runs
 * at the first request, so never for a program without our engine. `problem` receives the reason of a failed detection, and of a file that
 * cannot be written.
 */
export function findOwnMachine(
  native: Native,
  files: TopologyFiles,
  given: GivenTopology,
  problem: (message: string) => void,
): OwnMachine {
  if (!files.onGpus && given.file === null) return NO_MACHINE;
  let found: ReturnType<OwnMachine> = null;
  const find = (): NonNullable<ReturnType<OwnMachine>> => {
    const finding = import('../topology/machine.ts').then(({ ownMachine }) =>
      ownMachine(native, { ...files, ...given }, problem),
    );
    finding.catch((error: unknown) => problem(messageOf(error)));
    return finding;
  };
  return (device) => (files.onGpus && device === 'host' ? null : (found ??= find()));
}

/** Returns a notice of what could not be found out or written; null: there is none. */
export async function dumpHostTopology(
  native: Native,
  files: TopologyFiles,
  { file }: GivenTopology,
  placement: Placement,
): Promise<string | null> {
  if (files.dump === null) return null;
  const { dumpTopology, hostTopologySystem } = await import('../topology/file.ts');
  const ranks = localRanksByGpu(placement, visibleGpus(), files.environment);
  const rankOf = ({ busId }: { readonly busId: string }) => ranks.get(busId);
  try {
    const { system, notes } = await hostTopologySystem(native, file, { environment: files.environment, rankOf });
    dumpTopology(files.dump, system);
    return notes.length === 0 ? null : `${files.dump}: ${notes.join('; ')}`;
  } catch (error) {
    return `NCCL_TOPO_DUMP_FILE is not written: ${messageOf(error)}`;
  }
}

/** The first rank on each GPU, by the GPU's PCI address. `gpus`: what a program sees here. */
export function localRanksByGpu(
  { ranks, programs }: Placement,
  gpus: readonly VisibleGpu[],
  environment: NodeJS.ProcessEnv,
): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  if (environment['NCCLRUN_DEVICE'] === 'host') return found;
  for (const [localRank, ordered] of ranks.entries()) {
    const address = gpuOfRank(ordered, localRank, gpus, programs[ordered.program])?.address?.toLowerCase();
    if (address !== undefined && !found.has(address)) found.set(address, ordered.rank);
  }
  return found;
}
