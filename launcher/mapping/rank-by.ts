/** --rank-by: in which order the places of a program are numbered. */
import type { JobRequest } from '../model/types.ts';
import type { Place } from './map-ranks.ts';

/** `places` as they were dealt; null keeps that order. */
export function order(places: readonly Place[], rankBy: JobRequest['rankBy']): readonly Place[] {
  switch (rankBy) {
    case null:
      return places;
    case 'slot':
      return groups(places, (place) => place.host).flatMap((group) =>
        group.toSorted((one, other) => objectOf(one) - objectOf(other)),
      );
    case 'node':
      return inTurn(groups(places, (place) => place.host));
    case 'numa':
      return groups(places, (place) => place.host).flatMap((group) =>
        inTurn(groups(group, (place) => place.numa ?? 0)),
      );
    default:
      return rankBy satisfies never;
  }
}

function objectOf({ numa, gpu }: Place): number {
  return gpu ?? numa ?? 0;
}

/** In ascending order of their keys. */
function groups(places: readonly Place[], keyOf: (place: Place) => number): Place[][] {
  const byKey = new Map<number, Place[]>();
  for (const place of places) {
    const group = byKey.get(keyOf(place));
    if (group === undefined) byKey.set(keyOf(place), [place]);
    else group.push(place);
  }
  return [...byKey].toSorted(([one], [other]) => one - other).map(([, group]) => group);
}

/** The first of each group, the second of each… */
function inTurn(lists: readonly (readonly Place[])[]): Place[] {
  const taken: Place[] = [];
  let open = lists;
  for (let index = 0; open.length > 0; index += 1) {
    open = open.filter((list) => index < list.length);
    for (const list of open) {
      const place = list[index];
      if (place !== undefined) taken.push(place);
    }
  }
  return taken;
}
