/**
 * Each rank has the GPUs that srun would give it, however a Slurm job asked for them: srun itself is asked in the same allocation. Where tasks were
 * not asked for, srun starts one on each host; ncclrun, which starts one for each GPU, is told to do the same.
 */
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeIf } from '../rig/capability.ts';
import { Cluster, repository } from '../rig/cluster.ts';
import { Slurm, slurmUnavailable } from '../rig/slurm.ts';

const ncclrun = join(repository, 'bin/ncclrun');

/** Options of salloc, for a job on so many hosts with so many tasks in all, if those are stated. */
type Request = (hosts: number, tasks: number | null) => readonly string[];

/** One line per task; a refusal, where nothing runs. */
type Given = readonly string[] | 'refused';

const requests: Readonly<Record<string, Request>> = {
  '--gpus': (hosts) => [`--gpus=${4 * hosts}`],
  '--gpus of one type': (hosts) => [`--gpus=small:${2 * hosts}`],
  '--gpus unevenly': (hosts) => [`--gpus=${3 * hosts - 1}`],
  '--gpus-per-node': () => ['--gpus-per-node=3'],
  '--gpus-per-node of two types': () => ['--gpus-per-node=big:1,small:2'],
  '--gpus-per-socket': () => ['--sockets-per-node=2', '--gpus-per-socket=1'],
  '--gpus-per-task': () => ['--gpus-per-task=1'],
  '--gpus-per-task, two each': () => ['--gpus-per-task=2'],
  '--ntasks-per-gpu': () => ['--ntasks-per-gpu=1'],
  '--ntasks-per-gpu, two each': () => ['--ntasks-per-gpu=2'],
  '--gres': () => ['--gres=gpu:2'],
  '--gres of one type': () => ['--gres=gpu:small:2'],
  '--gres of two types': () => ['--gres=gpu:big:2,gpu:small:1'],
  '--gpu-bind=single:1': (hosts) => [`--gpus=${2 * hosts}`, '--gpu-bind=single:1'],
  '--gpu-bind=map_gpu': () => ['--gpus-per-node=4', '--gpu-bind=map_gpu:3,1'],
  '--gpu-bind=mask_gpu': () => ['--gpus-per-node=4', '--gpu-bind=mask_gpu:0x9,0x6'],
};

const hostCounts = [1, 2, 4];
const taskCounts: Readonly<Record<string, (hosts: number) => number | null>> = {
  'as they come': () => null,
  'two on each host': (hosts) => 2 * hosts,
  'more than hosts, unevenly': (hosts) => 3 * hosts - 1,
};

describeIf(slurmUnavailable(), 'the GPUs of a Slurm job', () => {
  let cluster: Cluster;
  let slurm: Slurm;
  beforeAll(async () => {
    cluster = await Cluster.start(4);
    slurm = await Slurm.start(cluster, { gpus: 4, types: ['big', 'big', 'small', 'small'] });
  });
  afterAll(async () => {
    await slurm[Symbol.asyncDispose]();
    await cluster[Symbol.asyncDispose]();
  });

  it.each(Object.entries(requests))('each rank has the GPUs that srun gives it for %s', async (_, request) => {
    const [asked, given] = [new Map<string, Given>(), new Map<string, Given>()];
    for (const hosts of hostCounts) {
      for (const [title, tasksOf] of Object.entries(taskCounts)) {
        const tasks = tasksOf(hosts);
        const cell = `${hosts} hosts, tasks ${title}`;
        const options = [
          `--nodes=${hosts}`,
          ...(tasks === null ? [] : [`--ntasks=${tasks}`]),
          ...request(hosts, tasks),
        ];
        const both = await compared(options);
        if (both === null) continue;
        asked.set(cell, both.srun);
        given.set(cell, both.ncclrun);
      }
    }
    expect(asked.size).toBeGreaterThan(0);
    expect(Object.fromEntries(given)).toEqual(Object.fromEntries(asked));
  });

  it('each rank has the MIG instances that srun gives it', async () => {
    const each = await compared(['--nodes=2', '--ntasks=5', '--gpus-per-task=1'], 'STAND_IN_MIG=1');
    expect(each?.ncclrun).toEqual(each?.srun);
    expect(each?.ncclrun).toContain('1 h1 MIG-fake-1');
    const together = await compared(['--nodes=2', '--gpus=5'], 'STAND_IN_MIG=1');
    expect(together?.ncclrun).toEqual(together?.srun);
  });

  it('each rank has GPUs of the type that --gpus-per-task names', async () => {
    // Not compared: where a host has several such tasks, srun (22.05) leaves CUDA_VISIBLE_DEVICES out for all of them.
    const each = await compared(['--nodes=2', '--ntasks=4', '--ntasks-per-node=2', '--gpus-per-task=small:1']);
    expect(each?.ncclrun).toEqual(['0 h1 2', '1 h1 3', '2 h2 2', '3 h2 3']);
  });

  it('the launcher starts as many ranks as the Slurm job has GPUs if it has no number of tasks', async () => {
    const { stdout } = await slurm.run(['salloc', '--quiet', '--nodes=2', '--gpus=5', ncclrun, 'hostname']);
    expect(stdout.match(/h[12]/g)?.toSorted()).toEqual(['h1', 'h1', 'h1', 'h1', 'h2']);
  });

  it('two jobs at once share the GPUs of hosts that have different numbers', async () => {
    const line = 'echo "$(hostname) $CUDA_VISIBLE_DEVICES"';
    const one = (hosts: string) => `${ncclrun} -H ${hosts} -N 1 --tag-output=none sh -c '${line}'`;
    const script = `${one('h1,h2')} & ${one('h2')}; wait`;
    const { stdout } = await slurm.run(['salloc', '-Q', '--nodelist=h1,h2', '--gpus=5', 'sh', '-c', script]);
    expect(stdout.trim().split('\n').toSorted()).toEqual(['h1 0,1,2,3', 'h2 0', 'h2 0']);
  });

  /** Null: Slurm grants no such allocation. */
  async function compared(
    options: readonly string[],
    setting = 'STAND_IN_MIG=',
  ): Promise<{ srun: Given; ncclrun: Given } | null> {
    const line = 'echo "$SLURM_PROCID $(hostname) $CUDA_VISIBLE_DEVICES"';
    const script = `
      srun sh -c '${line}' 2>&1; echo "srun $?"
      ${ncclrun} $([ -n "$SLURM_NTASKS" ] || echo -N 1) --tag-output=none sh -c '${line.replace('SLURM_PROCID', 'RANK')}' 2>&1; echo "ncclrun $?"`;
    const salloc = ['--quiet', '--immediate=10', ...options, 'sh', '-c', script];
    const { stdout, stderr } = await slurm.run(['env', setting, 'salloc', ...salloc]);
    const [srun = '', rest = ''] = stdout.split(/^srun ([0-9]+)\n/m).filter((_, index) => index % 2 === 0);
    if (rest === '') {
      expect(stderr).toMatch(/Requested node configuration is not available|Failed to validate job spec/);
      return null;
    }
    const [ours = ''] = rest.split(/^ncclrun [0-9]+\n/m);
    return { srun: lines(srun), ncclrun: lines(ours) };
  }
});

function lines(output: string): Given {
  const found = output.trim().split('\n');
  return found.some((line) => line.includes('srun: error: Unable to create step')) ? 'refused' : found.toSorted();
}
