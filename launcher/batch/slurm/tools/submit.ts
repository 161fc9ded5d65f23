/** One call of sbatch. What it submits is held, so that nothing runs before ncclrun knows its number. */
import type { Tool } from './tool.ts';
import { rangesOf } from './control.ts';

export interface Submission {
  readonly name: string;
  /** Numbers of an array's tasks; null: no array. */
  readonly indexes: readonly number[] | null;
  readonly maxParallel: number | null;
  /** As --dependency has it; may be empty. */
  readonly dependency: string;
  readonly script: string;
}

export type Submitted =
  | { readonly answer: 'submitted'; readonly job: number }
  | { readonly answer: 'refused'; readonly sentence: string }
  /** Slurm may have it or not. */
  | { readonly answer: 'unclear'; readonly sentence: string };

/** On the command line, where no variable of the user's environment wins over them. */
export function submissionWords({ name, indexes, maxParallel, dependency }: Submission): string[] {
  const limit = maxParallel === null ? '' : `%${maxParallel}`;
  return [
    '--parsable',
    '--hold',
    `--job-name=${name}`,
    ...(indexes === null ? [] : [`--array=${rangesOf(indexes)}${limit}`]),
    ...(dependency === '' ? [] : [`--dependency=${dependency}`, '--kill-on-invalid-dep=yes']),
  ];
}

export async function submitHeld(tool: Tool, submission: Submission): Promise<Submitted> {
  const { ok, stdout, sentence, unclear } = await tool('sbatch', submissionWords(submission), submission.script);
  const [, job] = /^([0-9]+)(?:;[^\s]*)?$/mu.exec(stdout) ?? [];
  if (job !== undefined) return { answer: 'submitted', job: Number(job) };
  if (ok) return { answer: 'unclear', sentence: `sbatch printed "${stdout.trim()}", and no number of a job` };
  return { answer: unclear ? 'unclear' : 'refused', sentence };
}
