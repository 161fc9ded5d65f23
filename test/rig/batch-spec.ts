/** Batches for tests, without a file. */
import type { BatchSpec, Dependency, JobSpec } from '../../launcher/batch/model/spec.ts';

export function jobSpec(name: string, changes: Partial<JobSpec> = {}): JobSpec {
  return {
    name,
    line: 1,
    command: ['true'],
    demand: {
      ranks: 1,
      nodes: null,
      ranksPerNode: null,
      takesSlots: true,
      cpusPerRank: 1,
      memoryBytes: 0,
      exclusive: false,
      hosts: null,
      exclude: [],
    },
    environment: {},
    passedEnvironment: [],
    workingDirectory: '/',
    timeLimitSeconds: null,
    priority: 50,
    array: null,
    dependencies: [],
    retry: { errors: 0, interruptions: 10, unlessExit: [], delaySeconds: 0, onOutOfMemory: false },
    output: '/dev/null',
    signal: null,
    held: false,
    options: [],
    slurm: [],
    ...changes,
  };
}

export function batchSpec(jobs: readonly JobSpec[], changes: Partial<BatchSpec> = {}): BatchSpec {
  return { name: 'test', jobs, onFailure: 'continue', notify: null, ...changes };
}

export const after = (job: string, condition: Dependency['condition'] = 'ok', each = false): Dependency => ({
  job,
  condition,
  each,
});

/** An array with so many tasks, from 0. */
export const arrayOf = (count: number, maxParallel: number | null = null, maxFails: number | null = null) => ({
  tasks: Array.from({ length: count }, (_, index) => ({ index, values: {} })),
  maxParallel,
  maxFails,
});
