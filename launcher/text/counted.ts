/** Numbers and lists with their nouns. */
import { ranges } from './ranges.ts';

/** `1 rank`, `8 ranks` */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** `rank 3`, `ranks 0-2,5`, in whatever order they come. */
export function ranksText(ranks: readonly number[]): string {
  return `${ranks.length === 1 ? 'rank' : 'ranks'} ${ranges(ranks.toSorted((one, other) => one - other))}`;
}
