/** ncclrun's own words for one attempt of a task, as somebody would type them. */
import type { Placement } from '../model/capacity.ts';
import type { JobSpec } from '../model/spec.ts';

interface AttemptWords {
  readonly job: JobSpec;
  /** With the array's values in their places. */
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly placement: Placement;
  /** With all hosts of the batch, and how they are reached; null: the allocation in which it runs has them. */
  readonly hostfile: string | null;
  readonly report: string;
  /** As --output has it; null: none. */
  readonly outputPattern: string | null;
}

export function attemptWords(attempt: AttemptWords): string[] {
  const { job, command, environment, placement, hostfile, report, outputPattern } = attempt;
  const { demand, timeLimitSeconds } = job;
  const ranks = placement.reduce((sum, share) => sum + share.ranks, 0);
  const includes = placement.map(({ host, slots }) => (slots.length > 0 ? `${host}:${slots.join(',')}` : host));
  const words = hostfile === null ? [] : ['--hostfile', hostfile, '--resource-manager', 'none'];
  words.push('--include', includes.join('@'), '--report', report, '--busy-gpus', 'refuse');
  if (!demand.takesSlots) words.push('--oversubscribe', ...perHost(placement));
  return [
    ...words,
    ...jobWords(job, ranks, timeLimitSeconds),
    ...taskWords({ job, command, environment, outputPattern }),
  ];
}

/** Of all tasks of a job, wherever they run. */
export function jobWords(
  { workingDirectory, options }: JobSpec,
  ranks: number,
  timeoutSeconds: number | null,
): string[] {
  const words = ['-n', String(ranks), '--live', 'never', '--stdin', 'none', '--wdir', workingDirectory];
  if (timeoutSeconds !== null) words.push('--timeout', String(timeoutSeconds));
  return [...words, ...options];
}

/** Of one task, the program last. */
export function taskWords(task: Pick<AttemptWords, 'job' | 'command' | 'environment' | 'outputPattern'>): string[] {
  const { job, command, environment, outputPattern } = task;
  const words = outputPattern === null ? [] : ['--output', `file=${outputPattern}`];
  for (const [name, value] of Object.entries(environment)) words.push('-x', `${name}=${value}`);
  for (const name of job.passedEnvironment) words.push('-x', name);
  if (!job.demand.takesSlots && environment['CUDA_VISIBLE_DEVICES'] === undefined)
    words.push('-x', 'CUDA_VISIBLE_DEVICES=');
  return [...words, '--', ...command];
}

/** Ranks that take no slots are dealt evenly, as they were placed. */
function perHost(placement: Placement): string[] {
  const [first] = placement;
  const even = first !== undefined && placement.every(({ ranks }) => ranks === first.ranks);
  return even ? ['-N', String(first.ranks)] : [];
}
