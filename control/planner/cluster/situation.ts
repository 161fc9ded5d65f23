/** What the tuning model has to know of a cluster. */
import { ranksOfHosts } from '../../plan/possible.ts';
import { totalBandwidth } from '../search/graph.ts';
import type { Situation } from '../tuning/situation.ts';
import { agree } from './agreement.ts';
import type { Cluster } from './cluster.ts';
import type { NetNode } from '../machine/node.ts';
import type { HostShape } from './host-shape.ts';

/** `blocks`: number of SMs that an operation may use. Throws a RangeError for a cluster without hosts. */
export function situationOf({ shapes, ranks, hosts, ring, tree }: Cluster, blocks: number): Situation {
  const machines = shapes.map((shape) => shape.routes.machine);
  const chains = shapes.flatMap(({ collnetChain }) => (collnetChain === null ? [] : [collnetChain]));
  return {
    ranks,
    hosts: hosts.length,
    ranksOfEachHost: ranksOfHosts(hosts.map((host) => host.ranks.length)).ranksOfEachHost,
    ring,
    tree,
    collnet: chains.length === shapes.length ? agree(chains) : null,
    linkBandwidth: Math.min(...shapes.map(linksOf)),
    blocks,
    nicRate: Math.min(...machines.map(({ nets }) => portRate(nets))) || null,
    linkRate: Math.min(...machines.map(({ nets }) => Math.max(0, ...nets.map(({ bandwidth }) => bandwidth)))) || null,
  };
}

/** NICs of one port share its bandwidth. */
function portRate(nets: readonly NetNode[]): number {
  const ports = new Map(nets.map(({ port, bandwidth }) => [port, bandwidth]));
  return [...ports.values()].reduce((sum, bandwidth) => sum + bandwidth, 0);
}

/** GB/s that each GPU sends to others, all GPUs at once: over its NVLinks where NVLinks connect every pair, else what rings carry. */
function linksOf({ routes, ring }: HostShape): number {
  const { gpus } = routes.machine;
  if (gpus.length < 2) return 0;
  const isComplete = gpus.every((gpu) =>
    gpus.every((other) => gpu === other || routes.path(gpu, other).type === 'NVL'),
  );
  if (!isComplete) return totalBandwidth(ring.channels.length, ring, false) / 1000;
  const sums = gpus.map(({ links }) =>
    links.reduce((sum, { kind, bandwidth }) => (kind === 'nvlink' ? sum + bandwidth : sum), 0),
  );
  return Math.min(...sums) / 1000;
}
