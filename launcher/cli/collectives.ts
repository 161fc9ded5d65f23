/** Collectives as users name them: nccl-tests' names. */
import { basename } from 'node:path';
import { COLLECTIVE_WORDS, COLLECTIVES, type CollectiveName, type CollectiveWord } from '../../control/collectives.ts';
import { collectives } from './command-table.ts';
import { nearest } from '../text/nearest.ts';
import { usageError } from '../model/usage-error.ts';

export function collectiveOfWord(word: CollectiveWord): CollectiveName {
  const name = COLLECTIVES.find((one) => one !== 'barrier' && COLLECTIVE_WORDS[one] === word);
  if (name === undefined) throw new RangeError(`no collective is called ${word}`);
  return name;
}

export function collectivesOf(words: readonly string[]): CollectiveName[] {
  return collectiveWords(words).map(collectiveOfWord);
}

/** nccl-tests' program of a collective, `build/all_reduce_perf`, as the collective's word; every other word as it is. */
export function wordOfProgram(word: string): string {
  const name = basename(word).replace(/_perf$/u, '');
  return word.endsWith('_perf') && collectives.some((one) => one === name) ? name : word;
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
