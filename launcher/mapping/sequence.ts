/** --map-by seq: one rank for each mention of a host, in the order of the hostfile's lines or of -H. */
import type { Program } from './map-ranks.ts';
import { counted } from '../text/counted.ts';
import { programName, refuse } from './refusal.ts';

/** A host (as index) for each rank. The programs before have used up a host's first mentions. */
export function dealSequence(program: Program): number[] {
  const { hosts, may, wish, taken } = program;
  const used = taken.reduce((sum, count) => sum + count, 0);
  const mentions = hosts
    .flatMap((host, index) => {
      const own = (host.mentions ?? [0]).toSorted((one, other) => one - other).slice(taken[index]);
      return may[index] === true ? own.map((at) => ({ at, index })) : [];
    })
    .toSorted((one, other) => one.at - other.at || one.index - other.index)
    .map(({ index }) => index);
  const wanted = wish.ranks ?? mentions.length;
  if (wanted > 0 && wanted <= mentions.length) return mentions.slice(0, wanted);
  const left = used === 0 ? '' : ` left for ${programName(program)}`;
  const message = `--map-by seq puts a rank on each line's host; ${counted(Math.max(wanted, 1), 'rank')} asked for, but there are ${mentions.length} lines${left}`;
  throw refuse(message, 'list a host as often as it is to get a rank');
}
