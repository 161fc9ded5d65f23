/** What the launcher of an attempt is told. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { taskOf } from '../file/task.ts';
import type { Placement } from '../model/capacity.ts';
import type { BatchSpec } from '../model/spec.ts';
import type { Task } from '../model/task.ts';
import type { BatchDirectory } from '../state/directory.ts';
import { attemptWords } from './attempt-words.ts';
import type { AttemptPlan, Launchers } from './launchers.ts';
import { outputOf } from './output-path.ts';
import { taskName } from './task-name.ts';

interface PlanFacts {
  readonly directory: BatchDirectory;
  readonly launchers: Launchers;
  readonly spec: BatchSpec;
  readonly generation: number;
}

export function attemptPlan(
  { directory, launchers, spec, generation }: PlanFacts,
  task: Task,
  placement: Placement,
): AttemptPlan {
  const job = spec.jobs[task.job];
  if (job === undefined) throw new Error(`the batch has no job ${task.job}`);
  const records = launchers.recordsOf(task.id, task.attempt);
  const filled = taskOf(spec, job, job.array?.tasks[task.position] ?? null);
  const output = outputPathOf(directory, spec, task);
  const own = {
    NCCLRUN_BATCH: directory.id,
    NCCLRUN_TASK: taskName(spec, task),
    NCCLRUN_ATTEMPT: String(task.attempt),
  };
  return {
    output: output.path,
    hosts: placement.map(({ host }) => host),
    order: {
      schemaVersion: 1,
      batch: directory.id,
      task: taskName(spec, task),
      attempt: task.attempt,
      generation,
      workingDirectory: job.workingDirectory,
      environment: {},
      argv: attemptWords({
        job,
        command: filled.command,
        environment: { ...own, ...filled.environment },
        placement,
        hostfile: existsSync(directory.hostfile) ? directory.hostfile : null,
        report: records.reportPath,
        outputPattern: output.ofRanks,
      }),
    },
  };
}

/** Of the task's latest attempt. */
export function outputPathOf(directory: BatchDirectory, spec: BatchSpec, task: Task): ReturnType<typeof outputOf> {
  const job = spec.jobs[task.job];
  if (job === undefined) throw new Error(`the batch has no job ${task.job}`);
  const arrayTask = job.array?.tasks[task.position] ?? null;
  const ofLauncher = join(directory.attempts, `${task.id}.${task.attempt}`, 'launcher.out');
  return outputOf(taskOf(spec, job, arrayTask).output, job.workingDirectory, ofLauncher, {
    batch: directory.id,
    job: job.name,
    index: arrayTask?.index ?? 0,
    task: task.id,
    attempt: task.attempt,
  });
}
