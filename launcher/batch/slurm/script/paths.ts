/** Files of a batch on Slurm, where its hosts find them: below the working directory of each job, which all of them must have. */
import { join } from 'node:path';
import { taskOf } from '../../file/task.ts';
import type { BatchSpec, JobSpec } from '../../model/spec.ts';
import type { Task } from '../../model/task.ts';
import { outputOf } from '../../run/output-path.ts';

/** The records of its attempts, and what its scripts say before ncclrun runs. */
export function resultsOf(batch: string, { workingDirectory }: JobSpec): string {
  return join(workingDirectory, '.ncclrun', batch);
}

/** A file that gets what a batch script itself says, as sbatch's --output has it. */
export function scriptOutput(results: string, isArray: boolean): string {
  const directory = results.replaceAll('%', '%%');
  return join(directory, isArray ? 'script-%A_%a.out' : 'script-%j.out');
}

/** `attempt`: a number, or what a shell puts in its place. */
export function slurmOutputOf(
  batch: string,
  spec: BatchSpec,
  { id, job: number, position }: Pick<Task, 'id' | 'job' | 'position'>,
  attempt: number | string,
): ReturnType<typeof outputOf> {
  const job = spec.jobs[number];
  if (job === undefined) throw new Error(`the batch has no job ${number}`);
  const arrayTask = job.array?.tasks[position] ?? null;
  const ofLauncher = join(resultsOf(batch, job), `${id}.${attempt}`, 'launcher.out');
  return outputOf(taskOf(spec, job, arrayTask).output, job.workingDirectory, ofLauncher, {
    batch,
    job: job.name,
    index: arrayTask?.index ?? 0,
    task: id,
    attempt,
  });
}
