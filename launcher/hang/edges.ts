/** Both ends of connections over the network, as the agents of their hosts know them. */
import type { RankEdge } from '../../control/messages/hang.ts';

export interface LocatedEdge extends RankEdge {
  readonly host: string;
}

/** By name. `answers`: of each host. */
export function edgesIn(
  answers: Iterable<readonly [host: string, where: { readonly edges: readonly RankEdge[] }]>,
): ReadonlyMap<string, LocatedEdge> {
  const all = new Map<string, LocatedEdge>();
  for (const [host, { edges }] of answers) for (const edge of edges) all.set(edgeName(edge), { ...edge, host });
  return all;
}

/** Of one end. */
export function edgeName({ communicator, epoch, rank, peer, channel, sends }: RankEdge): string {
  return `${communicator}:${epoch}:${rank}:${peer}:${channel}:${sends}`;
}

/** Name of the other end. */
export function otherEnd(edge: RankEdge): string {
  return edgeName({ ...edge, rank: edge.peer, peer: edge.rank, sends: !edge.sends });
}
