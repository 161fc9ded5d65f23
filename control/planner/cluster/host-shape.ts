/** What one machine gives to a cluster: its channels of every pattern. Equal machines share one. */
import type { MachineRoutes } from '../machine/routes.ts';
import { TopologyError } from '../../topology/element.ts';
import type { Element } from '../../topology/element.ts';
import type { FoundChannel, Graph, Pattern } from '../search/graph.ts';
import type { NamedGraphs } from '../search/graph-xml.ts';
import { readGraphs } from '../search/read-graphs.ts';
import { search } from '../search/search.ts';
import { SearchContext } from '../search/context.ts';
import { MAX_CHANNELS } from '../input/limits.ts';
import { linkLoads, shareOf } from '../verify/link-loads.ts';
import { hasSplitNvlinks } from './split-nvlink.ts';

/** Of CollNet's direct form: a head is connected to all others. */
const MAX_HEADS = 9;

export interface HostShape {
  readonly routes: MachineRoutes;
  readonly ring: Graph;
  readonly tree: Graph;
  /** null: no NIC reduces, or there are not as many channels as rings. */
  readonly collnetChain: Graph | null;
  readonly collnetDirect: Graph | null;
}

export interface ShapeOptions {
  /** NCCL_CROSS_NIC. */
  readonly crossNic: 0 | 1 | 2;
  /** The `<graphs>` of NCCL_GRAPH_FILE: what it has is not searched for. */
  readonly graphs: Element | null;
}

export const DEFAULT_SHAPE: ShapeOptions = { crossNic: 2, graphs: null };

/** `acrossHosts`: the channels go on to other machines. */
export function shapeOf(routes: MachineRoutes, acrossHosts: boolean, options: ShapeOptions = DEFAULT_SHAPE): HostShape {
  const { crossNic, graphs } = options;
  const given = graphs === null ? NO_GRAPHS : givenGraphs(graphs, routes, acrossHosts);
  const context = new SearchContext(routes);
  const gpus = routes.machine.gpus.length;
  const find = (pattern: Pattern, minChannels: number, maxChannels: number, collnetOnly = false): Graph | null =>
    search(context, { pattern, acrossHosts, collnetOnly, minChannels, maxChannels, crossNic });
  const all = possibleChannels(gpus);
  // Trees have as many channels as rings, and need two there. Where two rings do not fit, one is better than none.
  const pairs = all > 1 && hasSplitNvlinks(routes) ? find('ring', 2, all) : null;
  const rings = given.ring ?? pairs ?? find('ring', 1, all) ?? simpleOrder('ring', routes, 1, acrossHosts);
  const ringCount = rings.channels.length;
  const trees =
    given.tree ?? find('balancedTree', ringCount, ringCount) ?? simpleOrder('tree', routes, ringCount, acrossHosts);
  // Given ones may differ in number: every channel has both.
  const count = Math.min(ringCount, trees.channels.length);
  const ring = firstChannels(rings, count);
  const tree = firstChannels(trees, count);
  const reduces = routes.machine.nets.some(({ collnet }) => collnet);
  return {
    routes,
    ring,
    tree,
    collnetChain: given.collnetChain ?? (reduces ? find('tree', count, count, true) : null),
    collnetDirect: given.collnetDirect ?? (reduces ? find('collnetDirect', 1, Math.min(MAX_HEADS, gpus), true) : null),
  };
}

/** A search calls itself once for each GPU of each channel. Real hosts have fewer GPUs than it takes to get fewer channels. */
const DEEPEST_SEARCH = 1500;

function possibleChannels(gpus: number): number {
  return Math.min(MAX_CHANNELS / 2, Math.max(1, Math.floor(DEEPEST_SEARCH / gpus)));
}

/** Throws a TopologyError that names the variable. */
function givenGraphs(graphs: Element, { machine }: MachineRoutes, acrossHosts: boolean): NamedGraphs {
  try {
    return readGraphs(graphs, machine, acrossHosts);
  } catch (error) {
    if (!(error instanceof TopologyError)) throw error;
    throw new TopologyError(`NCCL_GRAPH_FILE: ${error.message}`, { cause: error });
  }
}

const NO_GRAPHS: NamedGraphs = { ring: null, tree: null, collnetChain: null, collnetDirect: null };

function firstChannels(graph: Graph, count: number): Graph {
  return { ...graph, channels: graph.channels.slice(0, count) };
}

const SLOWEST = 100;

/** What always works, where no path is wide enough: all GPUs in order, by the first NIC, as fast as the narrowest link allows. */
function simpleOrder(pattern: Pattern, routes: MachineRoutes, count: number, acrossHosts: boolean): Graph {
  const channel: FoundChannel = {
    order: routes.machine.gpus.map((_, index) => index),
    nets: acrossHosts ? [0, 0] : null,
  };
  const graph = {
    pattern,
    channels: Array.from({ length: count }, () => channel),
    inside: SLOWEST,
    between: SLOWEST,
    typeInside: 'SYS',
    typeBetween: 'SYS',
    sameChannels: true,
    crossNic: 0,
    latencyBetween: 0,
  } as const;
  const share = Math.max(1, ...linkLoads(routes, graph).map(shareOf));
  const speed = Math.max(1, Math.floor(SLOWEST / share));
  return { ...graph, inside: speed, between: speed };
}
