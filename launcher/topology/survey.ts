/** From a topology's elements to what the pictures of it are made of. */
import { elementsOf, locationOf, TopologyError } from '../../control/topology/element.ts';
import type { Element } from '../../control/topology/element.ts';
import { buildMachine } from '../../control/planner/machine/build.ts';
import type { Machine } from '../../control/planner/machine/node.ts';
import { MachineRoutes } from '../../control/planner/machine/routes.ts';
import { completed } from './complete.ts';
import type { CpuPart, GpuPart, NetPart } from './part.ts';
import { PartReader } from './part-reader.ts';

export interface Survey {
  /** Where it is from: a file, or a host. */
  readonly title: string;
  /** As it was read or found. */
  readonly system: Element;
  readonly machine: Machine;
  readonly routes: MachineRoutes;
  readonly cpus: readonly CpuPart[];
  /** By index. */
  readonly gpus: readonly GpuPart[];
  /** By index. */
  readonly nets: readonly NetPart[];
  /** What is missing, and why: sentences. */
  readonly notes: readonly string[];
}

/** Throws a TopologyError for what is missing or means nothing. */
export function survey(system: Element, title: string, notes: readonly string[] = []): Survey {
  if (system.name !== 'system') throw new TopologyError(`${locationOf(system)}: a topology begins with <system>`);
  if (elementsOf(system, 'cpu').length === 0) throw new TopologyError(`${locationOf(system)}: there is no <cpu> in it`);
  const { system: whole, unused } = completed(system);
  const machine = buildMachine(whole);
  const reader = new PartReader(machine, whole, unused);
  const cpus = elementsOf(whole, 'cpu').map((cpu, index) => reader.cpu(cpu, index));
  return {
    title,
    system,
    machine,
    routes: new MachineRoutes(machine),
    cpus,
    gpus: reader.gpus.toSorted((one, other) => one.index - other.index),
    nets: reader.nets.toSorted((one, other) => one.index - other.index),
    notes,
  };
}
