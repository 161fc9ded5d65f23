import { describe, expect, it } from 'vitest';
import { gpusByHost, taskGpus } from '../../launcher/allocation/managed/slurm-gpus.ts';
import { gpusOfTask } from '../../launcher/mapping/task-gpus.ts';

describe('the GPUs of a Slurm job', () => {
  it.each([
    [
      'equal hosts',
      'Nodes=n[1-2] CPU_IDs=0-1 Mem=0 GRES=gpu:a100:4(IDX:0-3)\n   TresPerJob=gres:gpu:8',
      { n1: [4, '--gres=gpu:4'], n2: [4, '--gres=gpu:4'] },
    ],
    [
      'types that were asked for',
      'Nodes=n1 CPU_IDs=0 Mem=0 GRES=gpu:a100:2(IDX:0,3),gpu:h100:1(IDX:2)\n   TresPerNode=gres:gpu:a100:2,gres:gpu:h100:1',
      { n1: [3, '--gres=gpu:a100:2,gpu:h100:1'] },
    ],
    [
      'unequal hosts',
      'Nodes=n1 CPU_IDs=0 Mem=0 GRES=gpu:a:2(IDX:0-1),gpu:b:2(IDX:2-3)\n  Nodes=n2 CPU_IDs=0 Mem=0 GRES=gpu:a:1(IDX:0),gpu:b:0(IDX:)\n   TresPerJob=gres:gpu:5',
      { n1: [4, '--gpus=4'], n2: [1, '--gpus=1'] },
    ],
    [
      'a host without any',
      'Nodes=n1 CPU_IDs=0 Mem=0 GRES=gpu:1(IDX:0)\n  Nodes=n2 CPU_IDs=0 Mem=0 GRES=nic:1\n   TresPerJob=gres:gpu:1',
      { n1: [1, '--gpus=1'], n2: [0, '--gres=none'] },
    ],
    [
      'MIG',
      'Nodes=n1 CPU_IDs=0 Mem=0 GRES=gpu:1g.10gb:2(IDX:0-1)\n  TresPerTask=gres:gpu:1g.10gb:1',
      { n1: [2, '--gres=gpu:1g.10gb:2'] },
    ],
  ])('gpusByHost reads %s', (_, details, expected) => {
    const found = Array.from(gpusByHost(`JobId=7\n     ${details}\n`), ([host, { count, option }]) => [
      host,
      [count, option],
    ]);
    expect(Object.fromEntries(found)).toEqual(expected);
  });

  it.each([
    [{ SLURM_GPUS_PER_TASK: 'h200:2' }, ['0,1', '2,3']],
    [{ SLURM_TRES_PER_TASK: 'cpu=2,gres/gpu=1' }, ['0', '1']],
    [{ SLURM_NTASKS_PER_GPU: '2' }, ['0', '0']],
    [{ SLURM_GPUS_PER_TASK: '1', SLURM_GPU_BIND: 'none' }, [null, null]],
    [{ SLURM_GPU_BIND: 'verbose,per_task:1' }, ['0', '1']],
    [{ SLURM_GPU_BIND: 'map_gpu:3,1' }, ['3', '1']],
    [{ SLURM_GPU_BIND: 'map_gpu:2*2,1' }, ['2', '2']],
    [{ SLURM_GPU_BIND: 'mask_gpu:0x9,6' }, ['0,3', '1,2']],
    [{ SLURM_GPU_BIND: 'closest' }, [null, null]],
    [{}, [null, null]],
  ])('gpusOfTask deals the GPUs as srun with %j', (environment, expected) => {
    const dealt = taskGpus(environment);
    const host = { devices: null, gpuCount: 4, ...(dealt === null ? {} : { taskGpus: dealt }) };
    const found = [0, 1].map((localRank) => gpusOfTask({ localRank, localSize: 2 }, host));
    expect(found.map((gpus) => gpus?.join(',') ?? null)).toEqual(expected);
  });

  it('gpusOfTask starts again with the first GPU where there are more tasks', () => {
    const host = { devices: null, gpuCount: 4, taskGpus: { type: 'single', tasks: 1 } } as const;
    expect(gpusOfTask({ localRank: 5, localSize: 6 }, host)).toEqual([1]);
  });

  it('gpusOfTask gives the slots of --include the GPUs of their tasks', () => {
    const host = { devices: [2], gpuCount: 4, taskGpus: { type: 'perTask', gpus: 1 } } as const;
    expect(gpusOfTask({ localRank: 0, localSize: 1 }, host)).toEqual([2]);
  });
});
