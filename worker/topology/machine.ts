/** This host's topology for the planner. Loaded only if ranks use GPUs, or if a file describes the host. */
import { knownMachine } from '../../control/planner/known-machine.ts';
import type { AnnouncedMachine } from '../../control/planner/known-machine.ts';
import type { Element } from '../../control/topology/element.ts';
import type { Native } from '../engine/native.ts';
import type { Probes } from './detect.ts';
import { hostTopologySystem } from './file.ts';

export interface MachineFiles {
  /** Of NCCL_TOPO_FILE and NCCL_GRAPH_FILE. */
  readonly file: Element | null;
  readonly graphs: Element | null;
  /** NCCL_GRAPH_DUMP_FILE. */
  readonly dumpGraphs: string | null;
  readonly environment: NodeJS.ProcessEnv;
  readonly onGpus: boolean;
}

/** Where no GPU is used, the file alone counts: ranks on processors stand for its GPUs. @throws TopologyError, UnplannableError */
export async function ownMachine(
  native: Native,
  { file, graphs, dumpGraphs, environment, onGpus }: MachineFiles,
  problem: (message: string) => void,
): Promise<AnnouncedMachine | null> {
  const system = onGpus ? (await hostTopologySystem(probesOf(native), file, { environment })).system : file;
  return system === null ? null : knownMachine({ topology: system, graphs }, { environment, dumpGraphs, problem });
}

/** Omits CUDA, which takes half a second to start and only adds what network cards may do, which the ranks report themselves. */
function probesOf(native: Native): Probes {
  return {
    nvmlGpus: () => native.nvmlGpus(),
    cudaGpus: () => 'CUDA is not asked',
    verbsPorts: () => native.verbsPorts(),
  };
}
