/** Numbers and lists with their nouns. */
import { ranges } from './ranges.ts';

/** `1 rank`, `8 ranks` */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** Characters of a list of ranks in a sentence. */
const LIST_CHARACTERS = 80;

/** `rank 3`, `ranks 0-2,5`, in whatever order they come. */
export function ranksText(ranks: readonly number[]): string {
  return `${nounOf(ranks)} ${ranges(ranks.toSorted((one, other) => one - other))}`;
}

/** The same for a sentence: of a long list its beginning and its end. */
export function shortRanksText(ranks: readonly number[]): string {
  return `${nounOf(ranks)} ${shortRanges(ranks)}`;
}

function nounOf(ranks: readonly number[]): string {
  return ranks.length === 1 ? 'rank' : 'ranks';
}

/** `0-2,5`; of a long list its beginning, with the last rank: `1,3,5,…,127` */
export function shortRanges(ranks: readonly number[]): string {
  const list = ranges(ranks.toSorted((one, other) => one - other));
  if (list.length <= LIST_CHARACTERS) return list;
  const last = list.slice(list.lastIndexOf(',') + 1);
  const begin = list.slice(0, list.lastIndexOf(',', LIST_CHARACTERS));
  return `${begin},…,${last}`;
}
