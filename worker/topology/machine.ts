/** What this host is, for the planner. Loaded only where ranks use GPUs, or a file says what the host is. */
import { writeFileSync } from 'node:fs';
import type { HostMachine } from '../../control/planner/input.ts';
import { graphsOf, knownMachine } from '../../control/planner/known-machine.ts';
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

/** Where no GPU is used, the file alone counts: ranks on processors stand for its GPUs. @throws TopologyError */
export async function ownMachine(
  native: Native,
  { file, graphs, dumpGraphs, environment, onGpus }: MachineFiles,
  trouble: (message: string) => void,
): Promise<HostMachine | null> {
  const system = onGpus ? (await hostTopologySystem(probesOf(native), file, { environment })).system : file;
  if (system === null) return null;
  const machine = knownMachine(system, environment, graphs);
  return dumpGraphs === null ? machine : dumping(machine, dumpGraphs, trouble);
}

/** Starting CUDA takes half a second, and says only what network cards may do; that the ranks say themselves. */
function probesOf(native: Native): Probes {
  return {
    nvmlGpus: () => native.nvmlGpus(),
    cudaGpus: () => 'CUDA is not asked',
    verbsPorts: () => native.verbsPorts(),
  };
}

/** What is found goes to the file too, as NCCL does it: the latest. */
export function dumping(machine: HostMachine, path: string, trouble: (message: string) => void): HostMachine {
  return {
    key: machine.key,
    shape(ranks, acrossHosts) {
      const found = machine.shape(ranks, acrossHosts);
      try {
        if (found !== null) writeFileSync(path, graphsOf(found));
      } catch (error) {
        trouble(`NCCL_GRAPH_DUMP_FILE is not written: ${error instanceof Error ? error.message : String(error)}`);
      }
      return found;
    },
  };
}
