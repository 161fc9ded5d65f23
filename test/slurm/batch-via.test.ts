/** Batches that Slurm schedules: what becomes of their jobs. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeIf } from '../rig/capability.ts';
import { Cluster } from '../rig/cluster.ts';
import { Slurm, slurmUnavailable } from '../rig/slurm.ts';
import { SlurmBatchRig } from '../rig/slurm-batch.ts';

describeIf(slurmUnavailable(), 'a batch that Slurm schedules', () => {
  let cluster: Cluster;
  let slurm: Slurm;
  beforeAll(async () => {
    cluster = await Cluster.start(2);
    slurm = await Slurm.start(cluster, { gpus: 2, settings: ['MaxArraySize=4'] });
  });
  afterAll(async () => {
    await slurm[Symbol.asyncDispose]();
    await cluster[Symbol.asyncDispose]();
  });

  it('Slurm runs every task once, in the order of their dependencies', async () => {
    await using rig = await SlurmBatchRig.open(slurm);
    const file = rig.file(
      "{ name: last, command: 'LEDGER', after: { train: any } }",
      "{ name: prep, command: 'LEDGER' }",
      '{ name: train, command: \'LEDGER; echo "lr ${{ array.lr }}"\', array: { lr: [0.1, 0.03, 0.01], max_parallel: 2 }, after: prep }',
      "{ name: pair, command: 'LEDGER; hostname', nodes: 2, gpus_per_node: 2, after: { prep: start } }",
    );
    const { status, stdout, stderr } = await rig.batch(file);
    expect({ status, stdout }, stderr).toEqual({ status: 0, stdout: expect.stringContaining('6 tasks: 6 succeeded') });
    expect(rig.ledger()).toEqual([
      'last 1',
      'pair 1',
      'pair 1',
      'pair 1',
      'pair 1',
      'prep 1',
      'train[0] 1',
      'train[1] 1',
      'train[2] 1',
    ]);
    expect(await readFile(join(rig.directory, 'train.1.1.out'), 'utf8')).toMatch(/^lr 0\.03\n/mu);
    const logs = await rig.run('logs', 'test-1/train[2]');
    expect(logs).toMatchObject({ status: 0, stdout: expect.stringMatching(/^lr 0\.01\n/mu) });
    const { tasks } = await rig.status('test-1');
    expect(tasks.find(({ name }) => name === 'pair')?.hosts).toEqual([
      { name: 'h1', ranks: 2 },
      { name: 'h2', ranks: 2 },
    ]);
  });

  it('a failed job skips what depends on its success, and starts what depends on its failure', async () => {
    await using rig = await SlurmBatchRig.open(slurm);
    const file = rig.file(
      '{ name: bad, command: exit 3 }',
      "{ name: next, command: 'LEDGER', after: bad }",
      "{ name: chain, command: 'LEDGER', after: next }",
      "{ name: mend, command: 'LEDGER', after: { bad: notok } }",
    );
    const { status, stdout } = await rig.batch(file);
    expect({ status, ledger: rig.ledger() }).toEqual({ status: 1, ledger: ['mend 1'] });
    expect(stdout).toMatch(/bad +failed .*status 3/u);
    expect(await rig.states('test-1')).toEqual({ bad: 'failed', next: 'skipped', chain: 'skipped', mend: 'succeeded' });
  });

  it('tasks of two arrays wait for each other task by task, beyond the size of an array in Slurm', async () => {
    await using rig = await SlurmBatchRig.open(slurm);
    const file = rig.file(
      '{ name: one, command: \'LEDGER; [ $NCCLRUN_ARRAY_TASK_ID != 12 ]\', array: "10-15" }',
      '{ name: two, command: \'LEDGER\', array: "10-15", after: { one: each } }',
    );
    const { status, stderr } = await rig.batch(file);
    expect(status, stderr).toBe(1);
    expect(stderr).toContain('Slurm cannot count so many tasks in one array');
    const ones = ['10', '11', '12', '13', '14', '15'].map((index) => `one[${index}] 1`);
    const twos = ['10', '11', '13', '14', '15'].map((index) => `two[${index}] 1`);
    expect(rig.ledger()).toEqual([...ones, ...twos]);
    expect(await rig.states('test-1')).toMatchObject({
      'one[12]': 'failed',
      'two[12]': 'skipped',
      'two[13]': 'succeeded',
    });
  });

  it('sbatch refuses a job, and nothing of the batch runs', async () => {
    await using rig = await SlurmBatchRig.open(slurm);
    const file = rig.file(
      "{ name: good, command: 'LEDGER' }",
      "{ name: wrong, command: 'LEDGER', slurm: [--partition=nowhere] }",
    );
    const { status, stderr } = await rig.batch(file);
    expect({ status, stderr }).toEqual({
      status: 2,
      stderr: expect.stringMatching(/sbatch refuses wrong \(.*batch\.yaml:6\): .*Invalid partition name specified/u),
    });
    expect(rig.ledger()).toEqual([]);
    expect(await rig.states('test-1')).toEqual({ good: 'cancelled', wrong: 'failed' });
  });

  it('Slurm queues a failed task again as often as the file says, and ncclrun counts its attempts', async () => {
    await using rig = await SlurmBatchRig.open(slurm);
    const file = rig.file(
      "{ name: flaky, command: 'LEDGER; ! mkdir failed', retry: { max_retries: 1 } }",
      "{ name: final, command: 'LEDGER; exit 2', retry: { max_retries: 1, unless_exit: [2] } }",
    );
    await using command = rig.start('batch', file, '--via', 'slurm');
    await command.line('stderr', /flaky: attempt 1 failed: .*; Slurm queues it again/u);
    // Slurm itself waits until all credentials of the first attempt have expired.
    const { stdout } = await slurm.run(['squeue', '--noheader', '--states=pending', '--format=%A']);
    await slurm.run(['scontrol', 'update', `JobId=${stdout.trim()}`, 'StartTime=now']);
    expect(await command.outcome).toMatchObject({ status: 1 });
    expect(rig.ledger()).toEqual(['final 1', 'flaky 1', 'flaky 2']);
    const { tasks } = await rig.status('test-1');
    expect(tasks.map(({ name, state, attempt }) => [name, state, attempt])).toEqual([
      ['flaky', 'succeeded', 2],
      ['final', 'failed', 1],
    ]);
  });

  it('hold, release, cancel and rerun reach tasks in Slurm without a process that watches', async () => {
    await using rig = await SlurmBatchRig.open(slurm);
    const file = rig.file(
      "{ name: held, command: 'LEDGER', hold: true }",
      "{ name: sleeper, command: 'LEDGER; exec sleep 600' }",
      "{ name: later, command: 'LEDGER', array: 0-2, after: { sleeper: any } }",
    );
    const { status, stdout } = await rig.batch(file, '--detach');
    expect({ status, stdout }).toEqual({ status: 0, stdout: 'test-1\n' });
    await rig.reaches('test-1', 'sleeper', 'running');
    expect(await rig.run('hold', 'test-1/later[1-2]')).toMatchObject({ status: 0, stdout: '2 tasks held\n' });
    expect(await rig.states('test-1')).toMatchObject({ held: 'held', 'later[0]': 'queued', 'later[2]': 'held' });
    expect(await rig.run('release', 'test-1/later[2]')).toMatchObject({ stdout: '1 task released\n' });
    expect(await rig.run('cancel', 'test-1/sleeper')).toMatchObject({ stdout: '1 task cancelled\n' });
    await rig.reaches('test-1', 'sleeper', 'cancelled');
    await rig.reaches('test-1', 'later[2]', 'succeeded');
    expect(await rig.run('cancel', 'test-1/later[1]')).toMatchObject({ status: 0 });
    expect(await rig.run('release', 'test-1/held')).toMatchObject({ status: 0 });
    await rig.reaches('test-1', 'held', 'succeeded');
    expect(await rig.run('rerun', 'test-1/later')).toMatchObject({ stdout: '1 task queued again\n' });
    await rig.reaches('test-1', 'later[1]', 'succeeded');
    expect(rig.ledger()).toEqual(['held 1', 'later[0] 1', 'later[1] 1', 'later[2] 1', 'sleeper 1']);
  });
});
