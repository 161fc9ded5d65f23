/** Graphs in NCCL's form, as NCCL_GRAPH_DUMP_FILE writes them. */
import { element } from '../../topology/element.ts';
import type { Element } from '../../topology/element.ts';
import type { Machine } from '../machine/node.ts';
import type { Graph, Pattern } from './graph.ts';

/** NCCL's numbers of patterns. */
export const PATTERNS: Readonly<Record<Pattern, number>> = {
  balancedTree: 1,
  splitTree: 2,
  tree: 3,
  ring: 4,
  collnetDirect: 6,
};
const NVLS_PATTERN = 5;

export interface NamedGraphs {
  readonly ring: Graph | null;
  readonly tree: Graph | null;
  readonly collnetDirect: Graph | null;
  readonly collnetChain: Graph | null;
}

/** The `<graphs>` element; NVLS, of which there is none here, as an empty graph like others that were not found. */
export function graphsXml(machine: Machine, graphs: NamedGraphs): Element {
  const { ring, tree, collnetDirect, collnetChain } = graphs;
  return element('graphs', { version: 1 }, [
    graphXml(machine, 0, PATTERNS.ring, ring),
    graphXml(machine, 1, PATTERNS.balancedTree, tree),
    graphXml(machine, 4, PATTERNS.collnetDirect, collnetDirect),
    graphXml(machine, 2, PATTERNS.tree, collnetChain),
    graphXml(machine, 3, NVLS_PATTERN, null),
  ]);
}

function graphXml({ gpus, nets }: Machine, id: number, pattern: number, graph: Graph | null): Element {
  const channels = graph?.channels.map(({ order, nets: ends }) => {
    const members = order.map((gpu) => {
      const part = gpus[gpu]?.part ?? null;
      return element('gpu', { dev: hexadecimal(gpus[gpu]?.device ?? 0), ...(part === null ? {} : { mlopart: part }) });
    });
    if (ends === null) return element('channel', {}, members);
    const [first, last] = ends.map((net) => element('net', { dev: hexadecimal(nets[net]?.device ?? 0) }));
    return element('channel', {}, first === undefined || last === undefined ? members : [first, ...members, last]);
  });
  return element(
    'graph',
    {
      id,
      pattern: graph === null ? pattern : PATTERNS[graph.pattern],
      crossnic: graph?.crossNic ?? 0,
      nchannels: graph?.channels.length ?? 0,
      speedintra: gigabytes(graph?.inside ?? 0),
      speedinter: gigabytes(graph?.between ?? 0),
      latencyinter: graph?.latencyBetween ?? 0,
      typeintra: graph?.typeInside ?? 'LOC',
      typeinter: graph?.typeBetween ?? 'LOC',
      samechannels: graph?.sameChannels === true ? 1 : 0,
    },
    channels ?? [],
  );
}

/** As C's %#x: 0, 0x1, 0xa. */
function hexadecimal(value: number): string {
  return value === 0 ? '0' : `0x${value.toString(16)}`;
}

/** Six digits, as C's %g has them. */
function gigabytes(megabytes: number): string {
  return String(Number((megabytes / 1000).toPrecision(6)));
}
