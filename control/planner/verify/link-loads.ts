/**
 * What a plan puts on each link of a machine, added up from its orders and NICs alone, without what the search kept. docs/topology.md, "What a
 * flow takes", has the rules.
 */
import { INTEL_ROOT_COMPLEX_FACTOR } from '../machine/constants.ts';
import type { MachineLink, MachineNode } from '../machine/node.ts';
import type { MachineRoutes } from '../machine/routes.ts';
import type { FoundChannel, Graph } from '../search/graph.ts';

interface LinkLoad {
  readonly link: MachineLink;
  /** MB/s. */
  readonly load: number;
}

/** Rounding of each flow to whole MB/s. */
const TOLERANCE = 1e-3;

/** All links that carry something, the fullest first. */
export function linkLoads(routes: MachineRoutes, graph: Graph): LinkLoad[] {
  const { links, gpus, nets } = routes.machine;
  const loads = new Float64Array(links.length);
  const flow = (from: MachineNode | undefined, to: MachineNode | undefined, bandwidth: number): void => {
    if (from === undefined || to === undefined || from === to) return;
    addFlow(routes, loads, from, to, bandwidth);
  };
  for (const channel of graph.channels) {
    for (const { from, to, bandwidth } of flowsOf(channel, graph)) {
      const ends = { gpu: gpus, net: nets };
      flow(ends[from.kind][from.index], ends[to.kind][to.index], bandwidth);
    }
  }
  return links
    .map((link) => ({ link, load: loads[link.index] ?? 0 }))
    .filter(({ load }) => load > 0)
    .toSorted((one, other) => shareOf(other) - shareOf(one));
}

/** Of the link's bandwidth; above 1 the plan cannot be kept. */
export function shareOf({ link, load }: LinkLoad): number {
  return load / link.bandwidth;
}

export function isOverloaded(load: LinkLoad): boolean {
  return shareOf(load) > 1 + TOLERANCE;
}

interface FlowEnd {
  readonly kind: 'gpu' | 'net';
  readonly index: number;
}
interface Flow {
  readonly from: FlowEnd;
  readonly to: FlowEnd;
  /** MB/s. */
  readonly bandwidth: number;
}

function flowsOf({ order, nets }: FoundChannel, { pattern, inside, between }: Graph): Flow[] {
  const gpu = (index: number): FlowEnd => ({ kind: 'gpu', index: order[index] ?? -1 });
  const flows: Flow[] = [];
  if (pattern === 'collnetDirect') {
    const share = inside / Math.max(1, order.length - 1);
    for (let other = 1; other < order.length; other++) {
      flows.push(
        { from: gpu(0), to: gpu(other), bandwidth: share },
        { from: gpu(other), to: gpu(0), bandwidth: share },
      );
    }
  } else {
    for (let index = 1; index < order.length; index++) {
      flows.push({ from: gpu(index - 1), to: gpu(index), bandwidth: inside });
    }
  }
  const last = order.length - 1;
  if (nets === null) {
    if (pattern === 'ring' && last > 0) flows.push({ from: gpu(last), to: gpu(0), bandwidth: inside });
    return flows;
  }
  const [enters, leaves] = nets.map((index): FlowEnd => ({ kind: 'net', index }));
  if (enters === undefined || leaves === undefined) return flows;
  flows.push({ from: enters, to: gpu(0), bandwidth: between });
  const senders = sendersOf(pattern, last);
  for (const index of senders) flows.push({ from: gpu(index), to: leaves, bandwidth: between / senders.length });
  return flows;
}

/** Places of the GPUs that send to the NIC. */
function sendersOf(pattern: Graph['pattern'], last: number): readonly number[] {
  if (pattern === 'ring') return [last];
  if (pattern === 'balancedTree' && last > 0) return [0, 1];
  return [pattern === 'splitTree' ? Math.min(1, last) : 0];
}

function addFlow(
  routes: MachineRoutes,
  loads: Float64Array,
  from: MachineNode,
  to: MachineNode,
  bandwidth: number,
): void {
  const { links, type } = routes.path(from, to);
  const crossesIntel =
    from.kind === 'gpu' && type === 'PHB' && links.some((link) => link.to.kind === 'cpu' && link.to.vendor === 'intel');
  const add = (link: MachineLink | undefined, load: number): void => {
    if (link !== undefined) loads[link.index] = (loads[link.index] ?? 0) + load;
  };
  for (const link of links) {
    const load = crossesIntel && link.kind === 'pci' ? bandwidth * INTEL_ROOT_COMPLEX_FACTOR : bandwidth;
    add(link, load);
    const back = link.to.links.find((other) => other.to === link.from && other.kind === link.kind);
    if (link.to.kind === 'gpu' && link.to.computeCapability < 80 && from.kind !== 'gpu') add(back, load / 8);
    if (link.kind === 'nvlink' && link.to.kind === 'cpu' && link.to.architecture === 'ppc64') add(back, load);
  }
}
