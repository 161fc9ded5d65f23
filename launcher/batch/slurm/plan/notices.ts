/** What Slurm does otherwise than ncclrun on a hostfile, of the things that a file asks for: said when it is submitted. */
import type { BatchSpec, JobSpec } from '../../model/spec.ts';
import type { Piece } from './piece.ts';

/** Sentences without a final period, each once, with the first job that it concerns. */
export function noticesOf(spec: BatchSpec, pieces: readonly Piece[]): string[] {
  const first = (wanted: (job: JobSpec, index: number) => boolean): JobSpec | undefined =>
    spec.jobs.find((job, index) => wanted(job, index));
  const notices: string[] = [];
  const say = (job: JobSpec | undefined, text: string): void => {
    if (job !== undefined) notices.push(`${job.name} (line ${job.line}): ${text}`);
  };
  say(
    first(({ retry }) => retry.errors > 0),
    'Slurm itself decides when a failed attempt starts again, usually after 2 minutes; delay has no effect',
  );
  say(
    first(({ priority }) => priority !== spec.jobs[0]?.priority),
    'priority orders the jobs of this batch alone, by --nice; Slurm orders them among all others',
  );
  say(
    first(({ passedEnvironment }) => passedEnvironment.length > 0),
    'Slurm keeps the values of env_from with the job, as it does the whole environment of sbatch',
  );
  say(
    first(({ array }, index) => array !== null && pieces.filter(({ job }) => job === index).length > 1),
    'Slurm cannot count so many tasks in one array (MaxArraySize): they are several jobs in Slurm, which max_parallel lets run one after another',
  );
  say(
    first(({ demand }) => demand.hosts !== null),
    'Slurm gives a job all hosts that hosts: names',
  );
  if (spec.onFailure !== 'continue') notices.push(`on_failure: ${spec.onFailure} ${WATCHED}`);
  if (spec.jobs.some(({ array }) => array !== null && array.maxFails !== null)) notices.push(`max_fails ${WATCHED}`);
  if (spec.notify !== null) notices.push(`notify ${WATCHED}`);
  return notices;
}

const WATCHED = 'takes effect while ncclrun batch watches the jobs, or ncclrun jobs looks at them';
