/** Collectives as users name them: nccl-tests' names. */
import type { CollectiveName } from '../../control/plan/types.ts';
import { collectives } from './command-table.ts';
import { nearest } from '../text/nearest.ts';
import { usageError } from '../model/usage-error.ts';

export type CollectiveWord = (typeof collectives)[number];

const NAMES: Readonly<Record<CollectiveWord, CollectiveName>> = {
  all_reduce: 'allReduce',
  all_gather: 'allGather',
  reduce_scatter: 'reduceScatter',
  broadcast: 'broadcast',
  reduce: 'reduce',
  alltoall: 'allToAll',
  gather: 'gather',
  scatter: 'scatter',
  sendrecv: 'sendRecv',
};

export function collectiveOf(word: CollectiveWord): CollectiveName {
  return NAMES[word];
}

export function collectivesOf(words: readonly string[]): CollectiveName[] {
  return collectiveWords(words).map((word) => NAMES[word]);
}

/** Each may be several with commas between them, or `all`. Throws a FailureError (usage). */
export function collectiveWords(words: readonly string[]): CollectiveWord[] {
  return words
    .flatMap((word) => word.split(','))
    .flatMap((word) => {
      if (word === 'all') return [...collectives];
      const known = collectives.find((name) => name === word);
      if (known !== undefined) return [known];
      const guess = nearest(word, collectives);
      throw usageError(
        `no collective is called ${word}`,
        guess === null ? `there are ${collectives.join(', ')}` : `did you mean ${guess}?`,
      );
    });
}
