/** `ncclrun prf`: a first word that is no program here, but nearly a command of ours. */
import { accessSync, constants, existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { FailureError } from '../job/failure-error.ts';
import type { JobRequest } from '../job/types.ts';
import { commandNames } from './command-names.ts';
import { nearest } from './nearest.ts';

/** Other hosts may have a program of that name: then it is not refused. Throws a FailureError (spawn). */
export function refuseMisspelt(word: string, { hostList, hostfile }: JobRequest, path: string): void {
  const guess = hostList === null && hostfile === null && !word.includes('/') ? nearest(word, commandNames) : null;
  if (guess === null || isProgram(word, path)) return;
  throw new FailureError({
    type: 'spawn',
    host: 'localhost',
    rank: 0,
    program: word,
    cause: 'not-found',
    errno: 'ENOENT',
    remedy: `did you mean: ncclrun ${guess}? ncclrun --help lists all commands`,
  });
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
