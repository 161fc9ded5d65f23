/**
 * A host's topology for the planner. What a search finds there is remembered: it takes milliseconds. Loaded only where a topology is known, so
 * that other jobs start without the code of the search.
 */
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { encodeMachineXml } from '../messages/machine.ts';
import type { MachineXml } from '../messages/machine.ts';
import { RecentMap } from '../rendezvous/memory.ts';
import type { Element } from '../topology/element.ts';
import { readGraphsXml, readTopology } from '../topology/read-topology.ts';
import { gpuElements, gpusByAddress, withRanksOn } from '../topology/used-gpus.ts';
import { writeXml } from '../topology/write-xml.ts';
import { shapeOf } from './cluster/host-shape.ts';
import type { HostShape } from './cluster/host-shape.ts';
import { plannerVariables } from './environment.ts';
import type { HostMachine, UsesGpu } from './input/input.ts';
import { buildMachine } from './machine/build.ts';
import { MachineRoutes } from './machine/routes.ts';
import { gpuNicsOf } from './network/gpu-nics.ts';
import type { GpuNic } from '../plan/gpu-nics.ts';
import { graphsXml } from './search/graph-xml.ts';
import type { Environment } from './input/variables.ts';
import { messageOf } from '../message-of.ts';

const REMEMBERED = 64;

/** A machine that an agent can send to other hosts. */
export interface AnnouncedMachine extends HostMachine {
  readonly wire: MachineXml;
}

export interface MachineParts {
  readonly topology: Element;
  /** The <graphs> of NCCL_GRAPH_FILE, which replace the search. */
  readonly graphs: Element | null;
}

export interface MachineOptions {
  readonly environment: Environment;
  /** NCCL_GRAPH_DUMP_FILE: gets what was found last. */
  readonly dumpGraphs: string | null;
  /** Receives the error if the file cannot be written. */
  readonly problem: (message: string) => void;
}

/** Throws UnplannableError for a wrong variable. */
export function knownMachine({ topology, graphs }: MachineParts, options: MachineOptions): AnnouncedMachine {
  const known = new RecentMap<HostShape>(REMEMBERED);
  const knownNics = new RecentMap<readonly GpuNic[]>(REMEMBERED);
  const { routes, shape } = plannerVariables(options.environment);
  const wire = { topology: writeXml(topology), graphs: graphs === null ? null : writeXml(withFile(graphs)) };
  const find = (peers: readonly UsesGpu[], acrossHosts: boolean): HostShape | null => {
    const gpus = gpusOf(topology, peers);
    if (gpus === null) return null;
    return shapeOf(new MachineRoutes(buildMachine(withRanksOn(topology, gpus)), routes), acrossHosts, {
      ...shape,
      graphs,
    });
  };
  return {
    key: createHash('sha256').update(encodeMachineXml(wire)).digest('hex'),
    wire,
    gpusAt: (busId) => gpusByAddress(topology).get(Number.parseInt(busId, 16))?.length ?? 0,
    shape(peers, acrossHosts) {
      const name = `${acrossHosts} ${peers.map(({ device, busId }) => (device === 'cuda' ? busId : '')).join(' ')}`;
      const remembered = known.get(name);
      const found = remembered ?? find(peers, acrossHosts);
      if (found === null) return null;
      if (remembered === undefined) known.set(name, found);
      dump(found, options);
      return found;
    },
    gpuNics(peers) {
      const name = peers.map(({ busId }) => busId).join(' ');
      const remembered = knownNics.get(name);
      const gpus = remembered === undefined ? gpusOf(topology, peers) : null;
      if (gpus === null) return remembered ?? null;
      const found = gpuNicsOf(withRanksOn(topology, gpus), routes);
      knownNics.set(name, found);
      return found;
    },
  };
}

/** Reads a machine that another host has sent. Throws TopologyError, UnplannableError. */
export function readMachine({ topology, graphs }: MachineXml, options: MachineOptions): HostMachine {
  const system = readTopology(topology, 'topology').root;
  return knownMachine({ topology: system, graphs: graphs === null ? null : readSentGraphs(graphs) }, options);
}

/** Attribute by which a host sends the name of the file that its graphs come from. */
const FILE = 'file';

function withFile(graphs: Element): Element {
  const source = graphs.location?.source;
  return source === undefined ? graphs : { ...graphs, attributes: new Map(graphs.attributes).set(FILE, source) };
}

/** Lines are those of the text that was sent, not the file's. */
function readSentGraphs(xml: string): Element {
  const root = readGraphsXml(xml, 'graphs');
  const source = root.attributes.get(FILE) ?? 'graphs';
  const placed = (one: Element): Element => ({
    ...one,
    location: { source, line: 0, column: 0 },
    children: one.children.map((child) => (child.kind === 'element' ? placed(child) : child)),
  });
  return placed(root);
}

/** As NCCL_GRAPH_DUMP_FILE has it. */
export function graphsOf({ routes, ring, tree, collnetChain, collnetDirect }: HostShape): string {
  return writeXml(graphsXml(routes.machine, { ring, tree, collnetChain, collnetDirect }));
}

function dump(shape: HostShape, { dumpGraphs, problem }: MachineOptions): void {
  if (dumpGraphs === null) return;
  try {
    writeFileSync(dumpGraphs, graphsOf(shape));
  } catch (error) {
    problem(`NCCL_GRAPH_DUMP_FILE is not written: ${messageOf(error)}`);
  }
}

/** Ranks of one PCI address take its GPUs in turn. On the host device ranks stand for the GPUs of a topology that the user gave, in its order. */
function gpusOf(system: Element, peers: readonly UsesGpu[]): Element[] | null {
  const onHosts = peers.some(({ device }) => device === 'host');
  const byAddress = onHosts ? null : gpusByAddress(system);
  const found =
    byAddress === null
      ? gpuElements(system).slice(0, peers.length)
      : peers.flatMap(({ busId }) => byAddress.get(Number.parseInt(busId, 16))?.shift() ?? []);
  return found.length === peers.length && new Set(found).size === found.length ? found : null;
}
