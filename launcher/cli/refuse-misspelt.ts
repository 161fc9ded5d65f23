/** `ncclrun prf`: a first word that is no program here, but nearly a command of ours. */
import { FailureError } from '../model/failure-error.ts';
import type { JobRequest } from '../model/types.ts';
import { commandNames, isCommandName } from '../model/command-names.ts';
import { usageError } from '../model/usage-error.ts';
import { nearest } from '../text/nearest.ts';
import { wordOfProgram } from './collectives.ts';
import { isProgram } from './is-program.ts';

/** Words that other tools have for what ncclrun does otherwise. Programs may have these names, so they are not run by a mistake. */
const otherWords: Readonly<Record<string, string>> = {
  kill: 'ncclrun stop JOB ends a job that ncclrun ps lists',
  run: 'leave the word out: ncclrun -n 4 PROGRAM',
  launch: 'leave the word out: ncclrun -n 4 PROGRAM',
  exec: 'leave the word out: ncclrun -n 4 PROGRAM',
  start: 'leave the word out: ncclrun -n 4 PROGRAM',
  list: 'ncclrun ps lists jobs',
  jobs: 'ncclrun ps lists jobs',
};

/** Throws a FailureError (usage) for a first word that is such a word. */
export function refuseOtherWord(word: string, rest: readonly string[]): void {
  const instead = Object.hasOwn(otherWords, word) ? otherWords[word] : undefined;
  if (instead === undefined) return;
  const remedy = `${instead}; to run the program of that name: ncclrun -- ${[word, ...rest].join(' ')}`;
  throw usageError(`ncclrun has no command ${word}`, remedy);
}

/** Warns of the name of a command of ours behind options, where it is a program on the PATH. */
export function commandBehindOptions(word: string, rest: readonly string[], isFirst: boolean): string[] {
  if (isFirst || !isCommandName(word)) return [];
  const own = `ncclrun ${word}${word === 'perf' ? ' all_reduce' : ''} OPTIONS`;
  return [`${[word, ...rest.slice(0, 2)].join(' ')} is run as a program; ncclrun's own command comes first: ${own}`];
}

/**
 * `isFirst`: no option stands before `word`. Behind options only a command's very name is taken for a mistake. Other hosts may have a program of
 * that name: then it is not refused. Throws a FailureError (spawn).
 */
export function refuseMisspelt(word: string, isFirst: boolean, request: JobRequest, path: string): void {
  const { hostList, hostfile, manager, programs } = request;
  if (hostList !== null || hostfile !== null || manager !== null || word.includes('/')) return;
  if (programs.some(({ exports }) => exports.some((text) => text.startsWith('PATH=')))) return;
  const collective = wordOfProgram(word);
  const measured =
    collective === word ? null : `ncclrun's own measurement needs no nccl-tests: ncclrun perf ${collective} OPTIONS`;
  const remedy = measured ?? guessedCommand(word, isFirst);
  if (remedy === null || isProgram(word, path)) return;
  throw new FailureError({
    type: 'spawn',
    host: 'localhost',
    rank: 0,
    program: word,
    cause: 'not-found',
    errno: 'ENOENT',
    remedy,
  });
}

function guessedCommand(word: string, isFirst: boolean): string | null {
  if (!isFirst) return isCommandName(word) ? `a command comes first: ncclrun ${word} …` : null;
  const guess = nearest(word, commandNames);
  return guess === null ? null : `did you mean: ncclrun ${guess}? ncclrun --help lists all commands`;
}
