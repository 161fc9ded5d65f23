/** What a task of a job is started with. */
import type { ArraySpec, ArrayTask, BatchSpec, JobSpec } from '../model/spec.ts';
import { fillIn, variablesIn } from './fill-in.ts';

interface FilledTask {
  readonly command: readonly string[];
  /** Without the variables that are passed on. */
  readonly environment: Readonly<Record<string, string>>;
  /** Pattern of a file; its %x and the like are not filled in yet. */
  readonly output: string;
}

/** `task` is null for a job that is no array. */
export function taskOf(batch: Pick<BatchSpec, 'name'>, job: JobSpec, task: ArrayTask | null): FilledTask {
  const values = new Map([
    ['batch.name', batch.name],
    ['job.name', job.name],
  ]);
  if (task !== null) {
    values.set('array.index', String(task.index));
    for (const [word, value] of Object.entries(task.values)) values.set(`array.${word}`, value);
  }
  const environment = filledEnvironment(job.environment, values);
  for (const [name, value] of Object.entries(environment)) values.set(`env.${name}`, value);
  return {
    command: job.command.map((word) => fillIn(word, values)),
    environment: { ...environment, ...(job.array === null || task === null ? {} : arrayVariables(job.array, task)) },
    // A value may have a percent sign of its own.
    output: fillIn(job.output, new Map([...values].map(([name, value]) => [name, value.replaceAll('%', '%%')]))),
  };
}

/** Variables may be made of other variables, whatever their order; the check of the file has found no circle. */
function filledEnvironment(
  environment: Readonly<Record<string, string>>,
  values: ReadonlyMap<string, string>,
): Record<string, string> {
  const filled = new Map(values);
  const valueOf = (name: string): string => {
    const key = `env.${name}`;
    const known = filled.get(key);
    if (known !== undefined) return known;
    const text = environment[name] ?? '';
    for (const other of variablesIn(text)) valueOf(other);
    const value = fillIn(text, filled);
    filled.set(key, value);
    return value;
  };
  return Object.fromEntries(Object.keys(environment).map((name) => [name, valueOf(name)]));
}

/** Names and values that all tasks of an array share. */
const shared = new WeakMap<ArraySpec, Readonly<Record<string, number>>>();

function sharedNumbers(array: ArraySpec): Readonly<Record<string, number>> {
  const known = shared.get(array);
  if (known !== undefined) return known;
  const indexes = array.tasks.map(({ index }) => index);
  const [first = 0] = indexes;
  const numbers = { COUNT: indexes.length, MIN: first, MAX: indexes.at(-1) ?? first, STEP: stepOf(indexes) };
  shared.set(array, numbers);
  return numbers;
}

/** Ours and, for scripts of Slurm, sbatch's. */
function arrayVariables(array: ArraySpec, task: ArrayTask): Record<string, string> {
  const variables: Record<string, string> = {};
  for (const prefix of ['NCCLRUN', 'SLURM']) {
    for (const [name, value] of Object.entries({ ID: task.index, ...sharedNumbers(array) })) {
      variables[`${prefix}_ARRAY_TASK_${name}`] = String(value);
    }
  }
  for (const [word, value] of Object.entries(task.values)) variables[`NCCLRUN_ARRAY_${word.toUpperCase()}`] = value;
  return variables;
}

/** 1 for indexes at unlike distances, as sbatch has it. */
function stepOf(indexes: readonly number[]): number {
  const [first = 0, second = first + 1] = indexes;
  const step = second - first;
  return indexes.every((index, at) => index === first + at * step) ? step : 1;
}
