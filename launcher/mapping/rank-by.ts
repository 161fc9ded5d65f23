/** --rank-by: in which order the places of a program are numbered. */
import type { JobRequest } from '../model/types.ts';
import type { RankPlacement } from './map-ranks.ts';

/** `places` as they were dealt; null keeps that order. */
export function order(placements: readonly RankPlacement[], rankBy: JobRequest['rankBy']): readonly RankPlacement[] {
  switch (rankBy) {
    case null:
      return placements;
    case 'slot':
      return groups(placements, (placement) => placement.host).flatMap((group) =>
        group.toSorted((one, other) => objectOf(one) - objectOf(other)),
      );
    case 'node':
      return roundRobin(groups(placements, (placement) => placement.host));
    case 'numa':
      return groups(placements, (placement) => placement.host).flatMap((group) =>
        roundRobin(groups(group, (placement) => placement.numa ?? 0)),
      );
    default:
      return rankBy satisfies never;
  }
}

function objectOf({ numa, gpu }: RankPlacement): number {
  return gpu ?? numa ?? 0;
}

/** In ascending order of their keys. */
function groups(placements: readonly RankPlacement[], keyOf: (placement: RankPlacement) => number): RankPlacement[][] {
  const byKey = new Map<number, RankPlacement[]>();
  for (const placement of placements) {
    const group = byKey.get(keyOf(placement));
    if (group === undefined) byKey.set(keyOf(placement), [placement]);
    else group.push(placement);
  }
  return [...byKey].toSorted(([one], [other]) => one - other).map(([, group]) => group);
}

/** The first of each group, the second of each… */
function roundRobin(lists: readonly (readonly RankPlacement[])[]): RankPlacement[] {
  const taken: RankPlacement[] = [];
  let open = lists;
  for (let index = 0; open.length > 0; index += 1) {
    open = open.filter((list) => index < list.length);
    for (const list of open) {
      const placement = list[index];
      if (placement !== undefined) taken.push(placement);
    }
  }
  return taken;
}
