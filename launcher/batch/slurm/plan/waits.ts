/** What a piece waits for, of the pieces before it. What has ended already decides nothing any more: the batch knows its end. */
import { usageError } from '../../../model/usage-error.ts';
import type { Dependency, JobSpec } from '../../model/spec.ts';
import { hasEnded } from '../../model/states.ts';
import type { Task } from '../../model/task.ts';
import type { Wait, WaitKind } from './piece.ts';

export interface WaitFacts {
  /** Tasks of a job, by its name. */
  tasksOf(this: void, job: string): readonly Task[];
  /** Number of the latest piece of a task. */
  pieceOf(this: void, task: number): number | null;
}

const kinds: Readonly<Record<Dependency['condition'], WaitKind>> = {
  ok: 'afterok',
  any: 'afterany',
  notok: 'afternotok',
  start: 'after',
};

/** Of the tasks of `job` at these positions. Throws a FailureError (usage) for what Slurm cannot wait for. */
export function waitsOf(job: JobSpec, positions: readonly number[], facts: WaitFacts): Wait[] {
  return job.dependencies.flatMap((dependency) => {
    const wait = waitOf(dependency, positions, facts);
    if (wait === null) return [];
    if (wait.kind === 'afternotok' && wait.pieces.length > 1)
      throw usageError(
        `${job.name} (line ${job.line}) waits until a task of ${dependency.job} has failed, and that array is ${wait.pieces.length} jobs in Slurm, of which each would have to fail`,
        `write { ${dependency.job}: any }, and look at the results in the command`,
      );
    return [wait];
  });
}

function waitOf({ job, condition, each }: Dependency, positions: readonly number[], facts: WaitFacts): Wait | null {
  const all = facts.tasksOf(job);
  const watched = each ? positions.flatMap((position) => all[position] ?? []) : all;
  const open = watched.filter(({ state }) => !hasEnded(state));
  const numbers = new Set(open.flatMap(({ id }) => facts.pieceOf(id) ?? []));
  if (numbers.size === 0) return null;
  const pieces = [...numbers].toSorted((one, other) => one - other);
  if (each) return { kind: 'aftercorr', pieces };
  if (condition === 'start' && watched.some(({ startedAt }) => startedAt !== null)) return null;
  const hasFailed = watched.some(({ state }) => hasEnded(state) && state !== 'succeeded');
  return { kind: condition === 'notok' && hasFailed ? 'afterany' : kinds[condition], pieces };
}

/** As --dependency has it; empty: it waits for nothing. `idOf` null: the piece was dropped, and its tasks have ended. */
export function dependencyText(waits: readonly Wait[], idOf: (piece: number) => string | null): string {
  return waits
    .flatMap(({ kind, pieces }) => {
      const ids = pieces.flatMap((piece) => idOf(piece) ?? []);
      return ids.length === 0 ? [] : [[kind, ...ids].join(':')];
    })
    .join(',');
}
