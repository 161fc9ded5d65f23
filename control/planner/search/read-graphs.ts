/** Graphs from a file in NCCL's form (NCCL_GRAPH_FILE): they replace the search. */
import * as attribute from '../../topology/attribute.ts';
import { elementsOf, locationOf, TopologyError } from '../../topology/element.ts';
import type { Element } from '../../topology/element.ts';
import type { Machine } from '../machine/node.ts';
import { PATH_TYPES } from '../machine/path.ts';
import type { PathType } from '../machine/path.ts';
import { PATTERN_NAMES } from './graph.ts';
import type { FoundChannel, Graph } from './graph.ts';
import { PATTERNS } from './graph-xml.ts';
import type { NamedGraphs } from './graph-xml.ts';

/** null: the file has none of this kind, or an empty one. Throws a TopologyError where a graph does not fit the machine. */
export function readGraphs(graphs: Element, machine: Machine, acrossHosts: boolean): NamedGraphs {
  if (graphs.name !== 'graphs') throw new TopologyError(`${locationOf(graphs)}: a file of graphs begins with <graphs>`);
  const find = (id: number): Graph | null => {
    const found = elementsOf(graphs, 'graph').find((graph) => attribute.whole(graph, 'id') === id);
    if (found === undefined || elementsOf(found, 'channel').length === 0) return null;
    return readGraph(found, machine, acrossHosts);
  };
  return { ring: find(0), tree: find(1), collnetChain: find(2), collnetDirect: find(4) };
}

function readGraph(from: Element, machine: Machine, acrossHosts: boolean): Graph {
  const number = attribute.whole(from, 'pattern');
  const pattern = PATTERN_NAMES.find((name) => PATTERNS[name] === number);
  if (pattern === undefined) {
    throw new TopologyError(`${locationOf(from)}: pattern="${from.attributes.get('pattern')}" is unknown`);
  }
  const crossNic = attribute.whole(from, 'crossnic', 0);
  return {
    pattern,
    channels: elementsOf(from, 'channel').map((channel) => readChannel(channel, machine, acrossHosts)),
    inside: speed(from, 'speedintra'),
    between: speed(from, 'speedinter'),
    typeInside: pathType(from, 'typeintra'),
    typeBetween: pathType(from, 'typeinter'),
    sameChannels: attribute.whole(from, 'samechannels', 0) !== 0,
    crossNic: crossNic === 1 || crossNic === 2 ? crossNic : 0,
    latencyBetween: attribute.decimal(from, 'latencyinter', 0),
  };
}

/** MB/s. */
function speed(from: Element, name: string): number {
  const gigabytes = attribute.decimal(from, name, 0);
  if (gigabytes > 0) return Math.round(gigabytes * 1000);
  throw new TopologyError(`${locationOf(from)}: ${name}="${from.attributes.get(name)}", expected GB/s above 0`);
}

function pathType(from: Element, name: string): PathType {
  const value = attribute.textAttribute(from, name);
  const known = PATH_TYPES.find((type) => type === value);
  if (known !== undefined) return known;
  throw new TopologyError(`${locationOf(from)}: ${name}="${value}", expected one of ${PATH_TYPES.join(', ')}`);
}

function readChannel(from: Element, { gpus, nets }: Machine, acrossHosts: boolean): FoundChannel {
  const devices = gpus.map(({ device }) => device);
  const order = elementsOf(from, 'gpu').map((gpu) => {
    const part = gpu.attributes.has('mlopart') ? attribute.whole(gpu, 'mlopart') : null;
    const device = attribute.whole(gpu, 'dev');
    const index = gpus.findIndex((one) => one.device === device && (part === null || one.part === part));
    return index === -1 ? indexIn('GPU', devices, gpu) : index;
  });
  if (new Set(order).size !== gpus.length || order.length !== gpus.length) {
    throw new TopologyError(
      `${locationOf(from)}: has ${order.length} GPUs, expected each of ${devices.join(', ')} once`,
    );
  }
  if (!acrossHosts) return { order, nets: null };
  const numbers = nets.map(({ device }) => device);
  const [enters, leaves = enters] = elementsOf(from, 'net').map((net) => indexIn('net', numbers, net));
  if (enters === undefined || leaves === undefined) {
    throw new TopologyError(`${locationOf(from)}: has no <net>, which channels between hosts need`);
  }
  return { order, nets: [enters, leaves] };
}

/** Where the device that `member` names is in `devices`. */
function indexIn(what: string, devices: readonly number[], member: Element): number {
  const device = attribute.whole(member, 'dev');
  const index = devices.indexOf(device);
  if (index !== -1) return index;
  throw new TopologyError(`${locationOf(member)}: there is no ${what} ${device}, but ${devices.join(', ')}`);
}
