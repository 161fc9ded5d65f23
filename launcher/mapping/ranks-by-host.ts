/** The ranks of a map, host by host. */
import type { MappedRank, RankMap } from '../model/types.ts';

/** By host index of the map, each host's in the order of their numbers. */
export function mappedRanksByHost({ hosts, ranks }: RankMap): readonly (readonly MappedRank[])[] {
  const result = hosts.map(() => new Array<MappedRank>());
  for (const rank of ranks) result[rank.host]?.push(rank);
  return result;
}
