/** What a batch would be submitted with, as a shell script that does the same. */
import { shellWord } from '../../../slurm/words.ts';
import { newTasks } from '../../model/new-tasks.ts';
import type { BatchSpec } from '../../model/spec.ts';
import type { Piece } from '../plan/piece.ts';
import { planPieces } from '../plan/pieces.ts';
import { dependencyText } from '../plan/waits.ts';
import { submissionWords } from '../tools/submit.ts';
import { resultsOf } from './paths.ts';
import { pieceScript } from './script.ts';

interface DryRun {
  readonly batch: string;
  readonly spec: BatchSpec;
  readonly command: string;
  readonly maxArraySize: number;
}

/** In place of what makes the names of each batch its own. */
const KEY = 'dryrun';

/** Throws a FailureError (usage) for what Slurm cannot do. */
export function dryRunText({ batch, spec, command, maxArraySize }: DryRun): { text: string; pieces: readonly Piece[] } {
  const tasks = newTasks(spec, 0);
  const all = new Set(tasks.map(({ id }) => id));
  const pieces = planPieces({ batch, key: KEY, maxArraySize, spec, tasks, earlier: [] }, all);
  const at = (id: number): (typeof tasks)[number] => {
    const task = tasks[id];
    if (task === undefined) throw new Error(`the batch has no task ${id}`);
    return task;
  };
  const submissions = pieces.map((piece) => {
    const array = spec.jobs[piece.job]?.array ?? null;
    const script = pieceScript(piece, { batch, command, spec, task: at });
    const words = submissionWords({
      name: piece.name,
      indexes: array === null ? null : piece.tasks.map(({ index }) => index ?? 0),
      maxParallel: array?.maxParallel ?? null,
      dependency: '',
      script,
    }).map(shellWord);
    const dependency = dependencyText(piece.waits, (number) => `$job${number}`);
    if (dependency !== '') words.push(`--dependency="${dependency}"`, '--kill-on-invalid-dep=yes');
    return `job${piece.number}=$(sbatch ${words.join(' ')} <<'END_OF_SCRIPT'\n${script}END_OF_SCRIPT\n)\n\n`;
  });
  const directories = [...new Set(spec.jobs.map((job) => resultsOf(batch, job)))];
  const free = pieces.filter(({ job }) => spec.jobs[job]?.held !== true).map(({ number }) => `$job${number}`);
  const head = `#!/bin/bash\nset -e\nmkdir -p ${directories.map(shellWord).join(' ')}\n\n`;
  const release = free.length === 0 ? '' : `scontrol release "${free.join(',')}"\n`;
  return { text: `${head}${submissions.join('')}${release}`, pieces };
}
