/** One job of a file. */
import { resolve } from 'node:path';
import type { JobSpec } from '../model/spec.ts';
import { readArray } from './array.ts';
import { readCommand } from './command.ts';
import { readDemand } from './demand.ts';
import { readMentions, type Mention } from './dependencies.ts';
import { readTimeLimit } from './duration.ts';
import { readVariables } from './environment.ts';
import { mistakeIn, type JobSource } from './job-source.ts';
import { readOptions, type CheckOptions } from './options.ts';
import { readOutput } from './output.ts';
import { checkReferences } from './references.ts';
import { readRetry } from './retry.ts';
import { readSignal } from './signal.ts';

const defaultPriority = 50;

export interface Surroundings {
  /** Absolute. */
  readonly workingDirectory: string;
  readonly checkOptions: CheckOptions;
}

/** A job and where the file names the jobs that it waits for, which are not checked yet. */
interface ReadJob {
  readonly spec: JobSpec;
  readonly mentions: readonly Mention[];
}

/** Throws a FailureError (usage). */
export function readJob(job: JobSource, { workingDirectory, checkOptions }: Surroundings): ReadJob {
  const { map, raw, source } = job;
  const command = readCommand(map, source);
  const array = readArray(job);
  const { environment, passed } = readVariables(map, source);
  const timeLimitSeconds = readTimeLimit(job);
  const mentions = readMentions(job);
  const spec = {
    name: raw.name,
    line: source.lineOf(map.start),
    command,
    demand: readDemand(job),
    environment,
    passedEnvironment: passed,
    workingDirectory: readDirectory(job, workingDirectory),
    timeLimitSeconds,
    priority: raw.priority ?? defaultPriority,
    array,
    dependencies: mentions.map(({ job: name, condition, each }) => ({ job: name, condition, each })),
    retry: readRetry(job),
    output: readOutput(job),
    signal: readSignal(job, timeLimitSeconds),
    held: raw.hold ?? false,
    options: readOptions(job, checkOptions),
    slurm: raw.slurm ?? [],
  };
  checkReferences(map, { array, environment, passed }, source);
  return { spec, mentions };
}

function readDirectory(job: JobSource, below: string): string {
  const directory = job.raw.working_dir ?? '.';
  if (directory.startsWith('~')) {
    const remedy = 'write an absolute path, or one below the directory of the batch: no shell reads it';
    throw mistakeIn(job, 'working_dir', `"${directory}" begins with "~"`, remedy);
  }
  if (directory.includes('\0')) {
    throw mistakeIn(job, 'working_dir', 'the path holds a null character', 'remove it');
  }
  return resolve(below, directory);
}
