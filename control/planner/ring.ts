/** The order of ranks in a ring. */
import type { PlannedPeer } from './input.ts';

/** Ranks ascending inside each host, hosts in the order of their lowest rank: every host is entered and left once. */
export function ringByHost(peers: readonly PlannedPeer[]): number[] {
  const members = new Map<number, number[]>();
  peers.forEach((peer, rank) => {
    const ranks = members.get(peer.host);
    if (ranks === undefined) members.set(peer.host, [rank]);
    else ranks.push(rank);
  });
  return [...members.values()].flat();
}
