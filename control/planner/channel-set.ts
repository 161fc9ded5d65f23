/** The rings and trees of a communicator, rank by rank. */
import type { UnboundChannel } from '../plan/types.ts';
import { Cluster } from './cluster/cluster.ts';
import type { ClusterHost } from './cluster/cluster.ts';
import { positionInDoubleTree } from './cluster/double-tree.ts';
import type { HostShape } from './cluster/host-shape.ts';
import { rankNumbersByHost } from './input/input.ts';
import type { PlanInput } from './input/input.ts';

export interface ChannelSet {
  /** Result of the search on the hosts' topologies; null if a host's topology is unknown. */
  readonly cluster: Cluster | null;
  /** The first `count` channels; a short set repeats. */
  channels(count: number): UnboundChannel[];
}

export function channelSetOf(input: PlanInput): ChannelSet {
  const cluster = clusterOf(input);
  if (cluster === null) {
    const channel = plainChannel(input.peers, rankNumbersByHost(input));
    return { cluster, channels: (count) => Array.from({ length: count }, () => channel) };
  }
  return { cluster, channels: (count) => channelsOf(cluster, count) };
}

/** null: some host's topology is not known, or does not have a GPU for each rank. */
function clusterOf(input: PlanInput): Cluster | null {
  const found: HostShape[] = [];
  const hosts: ClusterHost[] = [];
  for (const [host, ranks] of rankNumbersByHost(input).entries()) {
    const peers = ranks.flatMap((rank) => input.peers[rank] ?? []);
    const shape = input.hosts[host]?.machine?.shape(peers, input.hosts.length > 1) ?? null;
    if (shape === null) return null;
    const known = found.indexOf(shape);
    const index = known === -1 ? found.push(shape) - 1 : known;
    // The machine numbers its GPUs by the ranks' indices on their host.
    hosts.push({ shape: index, ranks: shape.routes.machine.gpus.map(({ rank }) => ranks[rank] ?? -1) });
  }
  return new Cluster(found, hosts);
}

function channelsOf(cluster: Cluster, count: number): UnboundChannel[] {
  const different = Math.min(count, cluster.channels);
  const rings = Array.from({ length: Math.min(different, cluster.ring.channels) }, (_, channel) =>
    cluster.ringOrder(channel),
  );
  const trees = Array.from({ length: different }, (_, channel) =>
    Array.from({ length: cluster.ranks }, (_rank, rank) => cluster.treeNeighbours(rank, channel).parent?.rank ?? rank),
  );
  return Array.from({ length: count }, (_, channel) => ({
    ring: rings[channel % rings.length] ?? [],
    tree: trees[channel % different] ?? [],
    rail: null,
  }));
}

/** Ranks ascending inside each host, one host after the other; a binary tree of hosts, and one of the ranks of each below its first. */
export function plainChannel(
  peers: readonly { readonly host: number }[],
  members: readonly (readonly number[])[],
): UnboundChannel {
  const tree = peers.map((_, rank) => rank);
  members.forEach((ranks, host) => {
    ranks.forEach((rank, index) => (tree[rank] = ranks[Math.floor((index - 1) / 2)] ?? rank));
    const { parent } = positionInDoubleTree(members.length, host, 0);
    const [top] = ranks;
    if (parent !== -1 && top !== undefined) tree[top] = members[parent]?.[0] ?? top;
  });
  return { ring: members.flat(), tree, rail: null };
}
