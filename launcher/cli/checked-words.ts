/** A command's own words, compared with what it takes. */
import type { CommandEntry } from './command-table.ts';
import { nearest } from '../text/nearest.ts';
import { usageError } from '../model/usage-error.ts';

/** Throws a FailureError (usage) where a word is missing, unknown or too much. */
export function checkedWords(words: readonly string[], entry: CommandEntry): readonly string[] {
  const { words: wanted, usage, line } = entry;
  switch (wanted.type) {
    case 'files':
    case 'program':
      return words;
    case 'none':
      return noneAfter(line.command, words, usage);
    case 'choice': {
      const [first, ...rest] = words;
      if (first === undefined && wanted.required) throw usageError(`no ${wanted.noun} given`, `write: ${usage}`);
      if (first === undefined) return words;
      noneAfter(first, rest, usage);
      if (wanted.choices.includes(first)) return words;
      const guess = nearest(first, wanted.choices);
      const remedy = guess === null ? `known: ${wanted.choices.join(', ')}` : `did you mean ${guess}?`;
      throw usageError(`unknown ${wanted.noun} "${first}"`, remedy);
    }
    default:
      return wanted satisfies never;
  }
}

function noneAfter(before: string, words: readonly string[], usage: string): readonly string[] {
  if (words[0] === undefined) return words;
  throw usageError(`"${words[0]}" after ${before} has no meaning`, `write: ${usage}`);
}
