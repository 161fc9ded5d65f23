/** Finds out what this host is: its processors, PCI switches, GPUs and nets, in the form of NCCL's topology file. */
import type { Element } from '../../control/topology/element.ts';
import type { Native } from '../engine/native.ts';
import { assemble } from './assemble.ts';
import { architectureName } from './cpu.ts';
import type { GpuFacts } from './facts.ts';
import { gpuFacts } from './gpu-facts.ts';
import type { GpuProbes } from './gpu-facts.ts';
import { hostHash } from './host-hash.ts';
import { netFacts } from './net-facts.ts';

/** The native probes. Each answers with a sentence (without its end) where its library is missing. */
export type Probes = GpuProbes & Pick<Native, 'verbsPorts'>;

export interface DetectOptions {
  /** `/`, or a test's directory: /sys and /proc are read below it. */
  readonly root?: string;
  readonly environment?: NodeJS.ProcessEnv;
  /** As Node names it. */
  readonly architecture?: string;
  /** Rank that uses a GPU, undefined if none does. Without this every GPU has its index as rank. */
  readonly rankOf?: (gpu: GpuFacts) => number | undefined;
}

export interface Detected {
  readonly system: Element;
  /** What could not be found out, and why: sentences without their ends. */
  readonly notes: readonly string[];
}

/** Where CUDA is asked too it takes as long as starting its driver does: half a second on a machine with GPUs. */
export async function detectTopology(probes: Probes, options: DetectOptions = {}): Promise<Detected> {
  const { root = '/', environment = process.env, architecture = process.arch, rankOf = ({ index }) => index } = options;
  const seen = gpuFacts(probes); // which takes longest
  const nets = netFacts(probes, root, environment);
  const gpus = await seen;
  const system = assemble(root, {
    gpus: gpus.facts,
    nets: nets.facts,
    hostHash: hostHash(root, environment),
    architecture: architectureName(architecture),
    rankOf,
  });
  return { system, notes: [...gpus.notes, ...nets.notes] };
}
