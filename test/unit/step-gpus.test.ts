import { expect, it } from 'vitest';
import { gpusOption } from '../../launcher/remote/slurm/step-gpus.ts';

it.each<[Record<string, string>, string[]]>([
  [{ SLURM_TASKS_PER_NODE: '2(x4)', SLURM_GPUS_PER_TASK: '1' }, ['--gpus-per-node=2']],
  [{ SLURM_TASKS_PER_NODE: '4', SLURM_GPUS_PER_TASK: 'h200:2' }, ['--gpus-per-node=h200:8']],
  [{ SLURM_TASKS_PER_NODE: '8(x2)', SLURM_NTASKS_PER_GPU: '2' }, ['--gpus-per-node=4']],
  [{ SLURM_TASKS_PER_NODE: '2,1', SLURM_GPUS_PER_TASK: '1' }, []],
  [{ SLURM_TASKS_PER_NODE: '2(x4)', SLURM_GPUS_PER_NODE: '4' }, []],
  [{ SLURM_GPUS_PER_TASK: '1' }, []],
  [{ SLURM_TASKS_PER_NODE: '2', SLURM_GPUS_PER_TASK: 'many' }, []],
])('gpusOption gives the right srun option for %j', (environment, words) =>
  expect(gpusOption(environment)).toEqual(words),
);
