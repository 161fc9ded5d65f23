import { mkdirSync } from 'node:fs';
import { usageError } from '../../../model/usage-error.ts';
import { errorCode } from '../../attempt/error-code.ts';
import type { BatchSpec } from '../../model/spec.ts';
import { placeOf } from '../plan/refuse.ts';
import { resultsOf } from './paths.ts';

/** Makes the directories of results: Slurm makes none for what a script says. Throws a FailureError (usage) where it cannot be. */
export function makeResultDirectories(batch: string, spec: BatchSpec, file: string): void {
  for (const job of spec.jobs) {
    const path = resultsOf(batch, job);
    try {
      mkdirSync(path, { recursive: true, mode: 0o700 });
    } catch (error) {
      throw usageError(
        `${placeOf(job, file)}: its results cannot be kept in ${path} (${errorCode(error) ?? 'error'})`,
        'make the working directory, where all hosts of the cluster find it, or write another working_dir:',
      );
    }
  }
}
