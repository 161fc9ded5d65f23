/** Batches inside an allocation of Slurm: its hosts are those of the batch. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeIf } from '../rig/capability.ts';
import { Cluster, repository } from '../rig/cluster.ts';
import { Slurm, slurmUnavailable } from '../rig/slurm.ts';

const ncclrun = join(repository, 'bin/ncclrun');

describeIf(slurmUnavailable(), 'a batch inside an allocation', () => {
  let cluster: Cluster;
  let slurm: Slurm;
  let directory: string;
  beforeAll(async () => {
    cluster = await Cluster.start(2);
    slurm = await Slurm.start(cluster);
    directory = await mkdtemp(join(repository, 'build/test-batch-'));
  });
  afterAll(async () => {
    await slurm[Symbol.asyncDispose]();
    await cluster[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  });

  it('runs its tasks on the hosts of the allocation', async () => {
    const file = join(directory, 'batch.yaml');
    const jobs = [
      '{ name: both, command: hostname, nodes: 2, ntasks: 2 }',
      '{ name: one, command: hostname, array: 0-2, after: both }',
    ];
    const defaults = `defaults: { working_dir: ${directory}, output: "%x.%a.out" }`;
    await writeFile(
      file,
      ['version: 1', 'name: test', defaults, 'jobs:', ...jobs.map((job) => `  - ${job}`)].join('\n'),
    );
    const batch = ['env', `XDG_STATE_HOME=${directory}`, ncclrun, 'batch', file];
    const { status, stdout } = await slurm.run(['salloc', '--nodes=2', '--ntasks-per-node=1', ...batch]);
    expect({ status, stdout }).toEqual({ status: 0, stdout: expect.stringContaining('4 tasks: 4 succeeded') });
  });
});
