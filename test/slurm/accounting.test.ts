/** What `sacct` says afterwards of jobs that ncclrun ran. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeIf } from '../rig/capability.ts';
import { Cluster, repository } from '../rig/cluster.ts';
import { Slurm, slurmUnavailable } from '../rig/slurm.ts';
import { SlurmBatchRig } from '../rig/slurm-batch.ts';
import { accountingUnavailable } from '../rig/slurm-accounting.ts';

const ncclrun = join(repository, 'bin/ncclrun');

describeIf(slurmUnavailable() ?? accountingUnavailable(), "Slurm's accounting", () => {
  let cluster: Cluster;
  let slurm: Slurm;
  let directory: string;
  beforeAll(async () => {
    cluster = await Cluster.start(2);
    slurm = await Slurm.start(cluster, { accounting: true });
    directory = await mkdtemp('/var/tmp/ncclrun-slurm-');
  });
  afterAll(async () => {
    await slurm[Symbol.asyncDispose]();
    await cluster[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  });

  // State and status of the job and of its batch script; sacct takes 128 from statuses beyond it, and has a cancelled job's only in the script's row.
  it.each([
    ['exit 0', 0, 'COMPLETED|0:0', 'COMPLETED|0:0'],
    ['exit $((RANK == 1 ? 5 : 0))', 5, 'FAILED|5:0', 'FAILED|5:0'],
    ['[ $RANK = 0 ] || kill -SEGV $$', 139, 'FAILED|11:0', 'FAILED|11:0'],
  ])(
    'sbatch and sacct show the exit status of a job whose ranks run: %s',
    async (script, expected, ofJob, ofScript) => {
      const { status, job } = await submitted(script);
      expect({ status, rows: await rows(job) }).toEqual({
        status: expected,
        rows: [`${job}|${ofJob}`, `${job}.batch|${ofScript}`],
      });
    },
  );

  // sbatch sees a cancelled job as finished before its script has ended: its own status then depends on which of the two it saw.
  it('sacct shows that a job was cancelled, and how its script ended', async () => {
    const { job } = await submitted('[ $RANK = 0 ] || scancel $SLURM_JOB_ID; sleep 60');
    await expect
      .poll(() => rows(job), { timeout: 60_000 })
      .toEqual([`${job}|CANCELLED by 0|0:0`, `${job}.batch|FAILED|15:0`]);
  });

  it("ncclrun knows by Slurm's accounting how a batch's jobs have ended that left no record", async () => {
    await using rig = await SlurmBatchRig.open(slurm);
    const file = rig.file('{ name: a, command: exit 0 }', '{ name: bad, command: exit 7, after: { a: any } }');
    expect(await rig.batch(file, '--detach')).toMatchObject({ status: 0 });
    await slurm.run(['sh', '-c', 'until [ -z "$(squeue --noheader)" ]; do sleep 0.1; done']);
    await rm(join(rig.directory, '.ncclrun'), { recursive: true });
    await slurm.stopController();
    slurm.resumeController('-c');
    await slurm.answers();
    const { tasks } = await rig.status('test-1');
    expect(tasks.map(({ name, state, exitCode }) => [name, state, exitCode])).toEqual([
      ['a', 'succeeded', 0],
      ['bad', 'failed', 7],
    ]);
  });

  const submitted = async (script: string): Promise<{ status: number | null; job: string }> => {
    const options = ['--nodes=2', '--ntasks-per-node=1', `--output=${directory}/output`];
    const { status, stdout } = await slurm.run([ncclrun, 'sbatch', '--wait', ...options, '--', 'sh', '-c', script]);
    return { status, job: /Submitted batch job ([0-9]+)/.exec(stdout)?.[1] ?? '' };
  };
  const rows = async (job: string): Promise<string[]> => {
    const reported = await slurm.run(['sacct', '-n', '-P', '-j', job, '-o', 'JobID,State,ExitCode']);
    return reported.stdout.split('\n').slice(0, 2);
  };
});
