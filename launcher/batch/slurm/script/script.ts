/** The batch script of a piece. It says all that its tasks need: nothing else has to be there when Slurm starts it. */
import { directiveWord, shellWord } from '../../../slurm/words.ts';
import { taskOf } from '../../file/task.ts';
import type { BatchSpec, JobSpec } from '../../model/spec.ts';
import type { Task } from '../../model/task.ts';
import { jobWords, taskWords } from '../../run/attempt-words.ts';
import { taskName } from '../../run/task-name.ts';
import type { Piece } from '../plan/piece.ts';
import { resourceOptions } from '../plan/resources.ts';
import { limitsOf } from '../plan/time-limit.ts';
import type { AttemptPolicy } from './attempt-order.ts';
import { resultsOf, scriptOutput, slurmOutputOf } from './paths.ts';

/** Stands in a word where the shell puts the attempt's number. No path and no value has this character. */
const ATTEMPT = '\u0001';

interface ScriptFacts {
  readonly batch: string;
  /** Path of ncclrun on the hosts. */
  readonly command: string;
  readonly spec: BatchSpec;
  task(this: void, id: number): Task;
}

export function pieceScript(piece: Piece, facts: ScriptFacts): string {
  const { batch, command, spec } = facts;
  const job = spec.jobs[piece.job];
  if (job === undefined) throw new Error(`the batch has no job ${piece.job}`);
  const results = resultsOf(batch, job);
  const options = [
    `--chdir=${job.workingDirectory}`,
    `--output=${scriptOutput(results, job.array !== null)}`,
    '--open-mode=append',
    ...resourceOptions(job, Math.max(...spec.jobs.map(({ priority }) => priority))),
  ];
  const limit = job.timeLimitSeconds === null ? null : limitsOf(job.timeLimitSeconds).timeoutSeconds;
  const words = ['slurm-attempt', JSON.stringify(policyOf(piece, job, results))];
  return [
    '#!/bin/bash',
    ...options.map((option) => `#SBATCH ${directiveWord(option)}`),
    '',
    `# ${job.name} of batch ${batch}. ncclrun takes hosts, tasks and GPUs from the allocation; its exit status is the job's.`,
    `attempt=$((\${SLURM_RESTART_COUNT:-0} + ${piece.before + 1}))`,
    ...taskLines(piece, job, facts),
    'mkdir -p -- "${output%/*}" && exec >>"$output" 2>&1 || exit 125',
    `exec ${shellWord(command)} ${words.map(shellWord).join(' ')} "$task" "$attempt" \\`,
    `  ${jobWords(job, job.demand.ranks, limit).map(shellWord).join(' ')} "$@"`,
    '',
  ].join('\n');
}

function policyOf({ before }: Piece, { retry }: JobSpec, results: string): AttemptPolicy {
  const { errors, interruptions, unlessExit, onOutOfMemory } = retry;
  return { results, before, retry: { errors, interruptions, unlessExit: [...unlessExit], onOutOfMemory } };
}

/** Set `task`, `output` and the words of the task. */
function taskLines({ tasks }: Piece, job: JobSpec, facts: ScriptFacts): string[] {
  const [first] = tasks;
  if (job.array === null && first !== undefined) return linesOf(facts.task(first.task), job, facts);
  return [
    'case "$SLURM_ARRAY_TASK_ID" in',
    ...tasks.flatMap(({ task, index }) => [
      `${index ?? 0})`,
      ...linesOf(facts.task(task), job, facts).map((line) => `  ${line}`),
      '  ;;',
    ]),
    '*) echo "the array has no task $SLURM_ARRAY_TASK_ID" >&2; exit 125 ;;',
    'esac',
  ];
}

function linesOf(task: Task, job: JobSpec, { batch, spec }: ScriptFacts): string[] {
  const filled = taskOf(spec, job, job.array?.tasks[task.position] ?? null);
  const output = slurmOutputOf(batch, spec, task, ATTEMPT);
  const own = { NCCLRUN_BATCH: batch, NCCLRUN_TASK: taskName(spec, task), NCCLRUN_ATTEMPT: ATTEMPT };
  const words = taskWords({
    job,
    command: filled.command,
    environment: { ...own, ...filled.environment },
    outputPattern: output.ofRanks,
  });
  return [`task=${task.id} output=${withAttempt(output.path)}`, `set -- ${words.map(withAttempt).join(' ')}`];
}

function withAttempt(word: string): string {
  const parts = word.split(ATTEMPT);
  return parts.map((part) => (part === '' && parts.length > 1 ? '' : shellWord(part))).join('"$attempt"');
}
