/**
 * A Slurm job's hosts: SLURM_JOB_NODELIST. Slots are the tasks that were asked for (SLURM_NTASKS says that they were, SLURM_TASKS_PER_NODE how
 * they lie), else the GPUs of each host (SLURM_GPUS_PER_NODE, or what Slurm says), else those that its agent finds, else its tasks.
 */
import { hostfileError, positionIn, type SourceLine } from '../grammar/diagnostic.ts';
import type { HostEntry } from '../grammar/entry.ts';
import { parseSlots } from '../grammar/number.ts';
import { Reading } from '../grammar/reading.ts';
import { checkTasks, parseTasksPerNode } from '../grammar/tasks-per-node.ts';
import { splitOutsideBrackets, tail } from '../grammar/tokenize.ts';
import { type ManagedHosts, mentions } from './hosts.ts';
import type { Environment, Manager } from './manager.ts';
import { gpusByHost, needsJobDetails, taskGpus } from './slurm-gpus.ts';

/** Throws a FailureError (hostfile). */
export function slurmHosts({ environment, details }: Manager): ManagedHosts {
  const names = hostsOfStep(environment) ?? hostNames(lineOf('SLURM_JOB_NODELIST', environment));
  const tasks = tasksPerNode(names.length, environment);
  const entriesWith = (slotsOf: (index: number) => number | null): HostEntry[] =>
    names.map((named, index) => ({ ...named, slots: slotsOf(index) }));
  const byHost = details === null ? null : gpusByHost(details);
  const gpus = gpusOf(byHost, environment);
  if ((environment['SLURM_NTASKS'] ?? '') !== '') {
    const why = 'tasks of the Slurm job (SLURM_TASKS_PER_NODE)';
    return { entries: entriesWith((index) => tasks[index] ?? 1), why, gpus };
  }
  const perNode = gpusPerNode(environment);
  if (perNode !== null)
    return { entries: entriesWith(() => perNode), why: 'GPUs of the Slurm job (SLURM_GPUS_PER_NODE)', gpus };
  const counts = names.map(({ name }) => byHost?.get(name)?.count ?? 0);
  if (counts.every((count) => count > 0))
    return { entries: entriesWith((index) => counts[index] ?? 1), why: 'GPUs of the Slurm job (scontrol)', gpus };
  return {
    gpus,
    entries: entriesWith(() => null),
    why: 'as many as the host has GPUs, or tasks if none',
    withoutGpus: new Map(names.map(({ name }, index) => [name, tasks[index] ?? 1])),
  };
}

/** `byHost`: as Slurm says. */
function gpusOf(
  byHost: ReturnType<typeof gpusByHost> | null,
  environment: Environment,
): NonNullable<ManagedHosts['gpus']> {
  if (!needsJobDetails(environment)) return () => ({});
  const dealt = taskGpus(environment);
  const common = dealt === null ? {} : { taskGpus: dealt };
  return (host) => {
    const found = byHost?.get(host);
    return found === undefined
      ? { ...common, gpuOption: null }
      : { ...common, gpuOption: found.option, gpuCount: found.count };
  };
}

function lineOf(name: string, environment: Environment): SourceLine {
  return { source: name, line: 1, text: environment[name] ?? '' };
}

function hostNames(line: SourceLine): HostEntry[] {
  const reading = new Reading();
  return splitOutsideBrackets({ text: line.text, offset: 0 }, ',').flatMap((word) =>
    mentions(word, null, line, reading),
  );
}

/**
 * In a step on some of the job's hosts Slurm sets SLURM_TASKS_PER_NODE for the step beside SLURM_JOB_NODELIST for the job: the hosts are those of the
 * step. Null: this is no such step.
 */
function hostsOfStep(environment: Environment): HostEntry[] | null {
  const [line, tasks] = [lineOf('SLURM_STEP_NODELIST', environment), lineOf('SLURM_TASKS_PER_NODE', environment)];
  if (line.text === '' || tasks.text === '') return null;
  const step = hostNames(line);
  const job = new Set(hostNames(lineOf('SLURM_JOB_NODELIST', environment)).map(({ name }) => name));
  const counts = parseTasksPerNode({ text: tasks.text, offset: 0 }, tasks);
  const isPart = step.length < job.size && counts.length === step.length && step.every(({ name }) => job.has(name));
  return isPart ? step : null;
}

/** One per host; 1 each where Slurm says nothing. */
function tasksPerNode(hosts: number, environment: Environment): readonly number[] {
  const line = lineOf('SLURM_TASKS_PER_NODE', environment);
  if (line.text === '') return Array.from({ length: hosts }, () => 1);
  const token = { text: line.text, offset: 0 };
  const counts = parseTasksPerNode(token, line);
  checkTasks({ counts, token }, hosts, line);
  return counts;
}

/** `4`, `h200:4`, `a100:2,h100:2`. Null: not stated. */
function gpusPerNode(environment: Environment): number | null {
  const line = lineOf('SLURM_GPUS_PER_NODE', environment);
  if (line.text === '') return null;
  let sum = 0;
  for (const word of splitOutsideBrackets({ text: line.text, offset: 0 }, ',')) {
    sum += parseSlots(tail(word, word.text.lastIndexOf(':') + 1), 'the number of GPUs', line);
  }
  if (sum > 0) return sum;
  throw hostfileError('no GPUs', positionIn(line, 0, line.text.length), 'leave SLURM_GPUS_PER_NODE as Slurm set it');
}
