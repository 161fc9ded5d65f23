/** Jobs in Slurm that change: held, released, ended. */
import { slurmFailure } from './slurm-failure.ts';
import type { Tool } from './tool.ts';

/** A job, or a task of an array. */
export interface Target {
  readonly job: number;
  readonly index: number | null;
}

/** Jobs to a call: a command line has room for more, and Slurm's daemon is asked once for each anyway. */
const AT_ONCE = 200;

/** They have ended, or are what they are to be. */
const NOTHING_TO_DO = /already finished|Invalid job id|already completing|Job\/step already|no longer pending/iu;

/** Throws a FailureError (system) where Slurm does not do it. */
export async function hold(tool: Tool, targets: readonly Target[]): Promise<void> {
  await each(targets, (words) => asked(tool, 'scontrol', ['hold', words.join(',')]));
}

/** Throws a FailureError (system) where Slurm does not do it. */
export async function release(tool: Tool, targets: readonly Target[]): Promise<void> {
  await each(targets, (words) => asked(tool, 'scontrol', ['release', words.join(',')]));
}

/** Throws a FailureError (system) where Slurm does not do it. */
export async function cancel(tool: Tool, targets: readonly Target[]): Promise<void> {
  await each(targets, (words) => asked(tool, 'scancel', ['--quiet', ...words]));
}

async function each(targets: readonly Target[], act: (words: readonly string[]) => Promise<void>): Promise<void> {
  const words = targetWords(targets);
  for (let at = 0; at < words.length; at += AT_ONCE) await act(words.slice(at, at + AT_ONCE));
}

async function asked(tool: Tool, name: string, words: readonly string[]): Promise<void> {
  const answer = await tool(name, words);
  if (!answer.ok && !NOTHING_TO_DO.test(answer.sentence)) throw slurmFailure(name, answer);
}

/** `12`, `13_3`; tasks of an array in one word, `13_[0-3,7]`. */
export function targetWords(targets: readonly Target[]): string[] {
  return [...Map.groupBy(targets, ({ job }) => job)].flatMap(([job, ofJob]) => {
    const indexes = ofJob.flatMap(({ index }) => index ?? []);
    if (indexes.length < ofJob.length) return [String(job)];
    return [indexes.length === 1 ? `${job}_${indexes[0] ?? 0}` : `${job}_[${rangesOf(indexes)}]`];
  });
}

/** `0-3,7`, as --array has it. */
export function rangesOf(numbers: readonly number[]): string {
  const ranges: { first: number; last: number }[] = [];
  for (const number of numbers.toSorted((one, other) => one - other)) {
    const range = ranges.at(-1);
    if (range !== undefined && number <= range.last + 1) range.last = number;
    else ranges.push({ first: number, last: number });
  }
  return ranges.map(({ first, last }) => (first === last ? String(first) : `${first}-${last}`)).join(',');
}
