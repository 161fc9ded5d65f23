/** From the words of `ncclrun plan` to the aggregators that a job would start. */
import type { AggregatorPlace } from '../../control/planner/input/network-reduction.ts';
import { buildMachine } from '../../control/planner/machine/build.ts';
import { usageError } from '../model/usage-error.ts';
import { checked, readUserTopologyFile } from '../topology/file.ts';

interface WantedAggregators {
  /** --collnet: how many; `auto`: one on each of the hosts for them; null: it was not given. */
  readonly count: number | 'auto' | null;
  /** --collnet-hosts. */
  readonly words: readonly string[];
  /** That have ranks, named host0, host1 and so on. */
  readonly hosts: number;
}

/** As the launcher places them: on the hosts that are named, else on those with ranks; evenly, the first ones have one more. Throws a FailureError (usage). */
export function plannedAggregators({ count, words, hosts }: WantedAggregators): AggregatorPlace[] {
  if (count === 0 || (count === null && words.length === 0)) return [];
  const named = words.flatMap((word) => placesOf(word, hosts));
  const ranked = Array.from({ length: hosts }, (_, host): AggregatorPlace => ({ place: 'member', host }));
  const places = named.length > 0 ? named : ranked.slice(0, typeof count === 'number' ? count : hosts);
  const all = typeof count === 'number' ? count : places.length;
  return places.flatMap((place, index) => {
    const own = Math.floor(all / places.length) + (index < all % places.length ? 1 : 0);
    return Array.from({ length: own }, () => place);
  });
}

/** `host0,node9`: hosts by their names; `server.xml:2`: two further hosts with that topology. */
function placesOf(word: string, hosts: number): AggregatorPlace[] {
  const [, path = '', digits = '1'] = /^(.*\.xml|.*\/.*?)(?::([0-9]{1,3}))?$/u.exec(word) ?? [];
  if (path !== '') return furtherHosts(path, Number(digits));
  return word.split(',').map((name): AggregatorPlace => {
    if (name === '') throw usageError(`--collnet-hosts ${word}: a name is empty`, 'separate names by single commas');
    const [, number] = /^host([0-9]{1,7})$/u.exec(name) ?? [];
    if (number === undefined) return { place: 'other', name, speedMbps: 0 };
    if (Number(number) < hosts) return { place: 'member', host: Number(number) };
    throw usageError(
      `--collnet-hosts ${word}: there is no ${name}, the plan has ${hosts === 1 ? 'host0 alone' : `host0 to host${hosts - 1}`}`,
      'name one of them, or give a further host another name',
    );
  });
}

/** Megabytes per second are so many Mb/s. */
const BITS = 8;

/** A connection uses one NIC: the fastest counts. */
function furtherHosts(path: string, count: number): AggregatorPlace[] {
  const { root } = readUserTopologyFile(path);
  const { nets } = checked(() => buildMachine(root));
  const fastest = Math.max(0, ...nets.map(({ bandwidth }) => bandwidth));
  return Array.from({ length: count }, (_, index) => ({
    place: 'other',
    name: count === 1 ? path : `${path} ${index + 1}`,
    speedMbps: Math.round(fastest * BITS),
  }));
}
