/** `ncclrun prf`: a first word that is no program here, but nearly a command of ours. */
import { accessSync, constants, existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { FailureError } from '../model/failure-error.ts';
import type { JobRequest } from '../model/types.ts';
import { commandNames, isCommandName } from '../model/command-names.ts';
import { nearest } from '../text/nearest.ts';

/**
 * `isFirst`: no option stands before `word`. Behind options only a command's very name is taken for a mistake. Other hosts may have a program of
 * that name: then it is not refused. Throws a FailureError (spawn).
 */
export function refuseMisspelt(word: string, isFirst: boolean, request: JobRequest, path: string): void {
  if (request.hostList !== null || request.hostfile !== null || word.includes('/')) return;
  const remedy = isFirst ? guessed(word) : isCommandName(word) ? `a command comes first: ncclrun ${word} …` : null;
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

function guessed(word: string): string | null {
  const guess = nearest(word, commandNames);
  return guess === null ? null : `did you mean: ncclrun ${guess}? ncclrun --help lists all commands`;
}

function isProgram(word: string, path: string): boolean {
  if (existsSync(word)) return true;
  return path.split(delimiter).some((directory) => {
    try {
      accessSync(join(directory, word), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
