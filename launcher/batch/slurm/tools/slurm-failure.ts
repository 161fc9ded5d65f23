import { FailureError } from '../../../model/failure-error.ts';
import type { Answer } from './tool.ts';

/** Slurm has not done what it was asked for, and nothing is lost by that. */
export function slurmFailure(command: string, { sentence }: Pick<Answer, 'sentence'>): FailureError {
  return new FailureError({
    type: 'system',
    message: `Slurm's ${command} has not answered as expected: ${sentence}`,
    remedy: 'ask again once sinfo answers; what Slurm has, it keeps, and ncclrun batch --resume goes on',
  });
}
