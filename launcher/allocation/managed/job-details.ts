/** What Slurm itself says about a job. */
import { usageError } from '../../model/usage-error.ts';

const LIMIT_MS = 30_000;

/** `scontrol show job --details`; null if it cannot be asked. Throws a FailureError (usage) for a job that Slurm does not know. */
export function jobDetails(job: string): string | null {
  const { spawnSync } = process.getBuiltinModule('node:child_process');
  const words = ['show', 'job', '--details', job];
  const { status, stdout, stderr } = spawnSync('scontrol', words, { encoding: 'utf8', timeout: LIMIT_MS });
  if (status === 0) return stdout;
  if (/Invalid job id/u.test(stderr ?? '')) throw unknownJob(job);
  return null;
}

function unknownJob(job: string): Error {
  return usageError(
    `SLURM_JOB_ID=${job}, but Slurm knows no such job: it has ended`,
    'start the job inside of a new allocation, or leave this one out of account with --resource-manager none',
  );
}
