/** Batches that Slurm schedules, where something dies on the way. */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeIf } from '../rig/capability.ts';
import { Cluster } from '../rig/cluster.ts';
import { noCompiler } from '../rig/gpu-programs.ts';
import { buildDieAt } from '../rig/killed-batch.ts';
import { Slurm, slurmUnavailable } from '../rig/slurm.ts';
import { SlurmBatchRig } from '../rig/slurm-batch.ts';
import { until } from '../rig/until.ts';

/** All points take minutes. */
const step = process.env['NCCLRUN_TEST_LONG'] === '1' ? 1 : 9;

const TWO = ["{ name: a, command: 'LEDGER' }", "{ name: b, command: 'LEDGER', after: a }"];

describeIf(slurmUnavailable() ?? noCompiler, 'a batch in Slurm, whatever dies', () => {
  let cluster: Cluster;
  let slurm: Slurm;
  beforeAll(async () => {
    cluster = await Cluster.start(1);
    slurm = await Slurm.start(cluster);
  });
  afterAll(async () => {
    await slurm[Symbol.asyncDispose]();
    await cluster[Symbol.asyncDispose]();
  });

  it('ncclrun submits no job twice and forgets none, wherever it is killed', async () => {
    await using first = await SlurmBatchRig.open(slurm);
    const library = buildDieAt(first.directory);
    const whole = await first.killedBatch(first.file(...TWO), library, null);
    expect({ status: whole.status, ledger: first.ledger() }, whole.stderr).toEqual({
      status: 0,
      ledger: ['a 1', 'b 1'],
    });
    const wrong: unknown[] = [];
    for (let at = step; at <= whole.points.length; at += step) {
      await using rig = await SlurmBatchRig.open(slurm);
      const killed = await rig.killedBatch(rig.file(...TWO), library, at);
      const next = await rig.run('batch', '--resume', 'test-1');
      const isNothing = next.status === 2 && /was never submitted|there is no batch/u.test(next.stderr);
      const expected = isNothing ? [] : ['a 1', 'b 1'];
      const isRight = (isNothing || next.status === 0) && rig.ledger().join() === expected.join();
      if (!isRight) wrong.push({ at, point: killed.points.at(-1), next, ledger: rig.ledger(), said: rig.said() });
    }
    expect(wrong).toEqual([]);
  }, 3_600_000);

  it.each([
    ['before it has asked', 'kill -9 $$'],
    ['before it has answered', 'REAL "$@" > /dev/null; kill -9 $$'],
  ])('ncclrun submits a job once whose sbatch is killed %s', async (_, death) => {
    await using rig = await SlurmBatchRig.open(slurm);
    const killed = join(rig.directory, 'killed');
    rig.replace('sbatch', `mkdir ${killed} 2> /dev/null || exec REAL "$@"\n${death}`);
    const { status, stderr } = await rig.batch(rig.file(...TWO));
    expect({ status, ledger: rig.ledger() }, stderr).toEqual({ status: 0, ledger: ['a 1', 'b 1'] });
    expect(stderr).toContain('Slurm does not answer (sbatch ended by SIGKILL)');
    expect((await rig.names()).filter((name) => name.endsWith(keyOf(rig)))).toHaveLength(2);
  });

  it('ncclrun cancels a job that Slurm has a second time under its name', async () => {
    await using rig = await SlurmBatchRig.open(slurm);
    // The answer of the first one comes too late: squeue does not show it yet.
    rig.replace(
      'sbatch',
      `REAL "$@" < <(tee ${rig.directory}/script) | tee ${rig.directory}/answer; REAL "$@" < ${rig.directory}/script > /dev/null`,
    );
    const { status } = await rig.batch(rig.file("{ name: a, command: 'LEDGER' }"));
    expect({ status, ledger: rig.ledger() }).toEqual({ status: 0, ledger: ['a 1'] });
  });

  it('ncclrun waits for a slurmctld that starts again, and goes on', async () => {
    await using rig = await SlurmBatchRig.open(slurm);
    const gate = join(rig.directory, 'gate');
    const file = rig.file(`{ name: a, command: 'LEDGER; until test -e ${gate}; do sleep 0.1; done' }`, TWO[1] ?? '');
    rig.replace('squeue', `exec timeout 3 REAL "$@"`);
    await using command = rig.start('batch', file, '--via', 'slurm');
    await command.line('stderr', /a runs on h1/u);
    await until('the task runs', () => rig.ledger().length === 1);
    await slurm.stopController();
    await command.line('stderr', /ncclrun goes on asking/u);
    const meanwhile = await rig.run('jobs', 'test-1');
    expect(meanwhile).toMatchObject({ status: 0, stdout: expect.stringContaining('this is what was known before') });
    slurm.resumeController();
    await slurm.answers();
    await command.line('stderr', /Slurm answers again/u);
    rmSync(join(rig.directory, 'bin'), { recursive: true });
    await slurm.run(['touch', gate]);
    expect(await command.outcome).toMatchObject({ status: 0 });
    expect(rig.ledger()).toEqual(['a 1', 'b 1']);
  });

  it('^C ends the watch alone, and --resume watches again', async () => {
    await using rig = await SlurmBatchRig.open(slurm);
    const gate = join(rig.directory, 'gate');
    const file = rig.file(`{ name: a, command: 'LEDGER; until test -e ${gate}; do sleep 0.1; done' }`, TWO[1] ?? '');
    await using command = rig.start('batch', file, '--via', 'slurm');
    await command.line('stderr', /a runs on h1/u);
    process.kill((await rig.status('test-1')).scheduler ?? 0, 'SIGINT');
    const { status, stderr } = await command.outcome;
    expect({ status, stderr }).toEqual({ status: 130, stderr: expect.stringContaining('Slurm goes on with it') });
    await slurm.run(['touch', gate]);
    const next = await rig.run('batch', '--resume', 'test-1');
    expect({ status: next.status, ledger: rig.ledger() }, next.stderr).toEqual({ status: 0, ledger: ['a 1', 'b 1'] });
  });

  it('ncclrun knows by its own records how jobs have ended that Slurm has forgotten', async () => {
    await using rig = await SlurmBatchRig.open(slurm);
    const file = rig.file("{ name: a, command: 'LEDGER' }", '{ name: bad, command: exit 7, after: a }');
    expect(await rig.batch(file, '--detach')).toMatchObject({ status: 0 });
    await slurm.run(['sh', '-c', 'until [ -z "$(squeue --noheader)" ]; do sleep 0.1; done']);
    await slurm.stopController();
    slurm.resumeController('-c');
    await slurm.answers();
    const { tasks } = await rig.status('test-1');
    expect(tasks.map(({ name, state, exitCode }) => [name, state, exitCode])).toEqual([
      ['a', 'succeeded', 0],
      ['bad', 'failed', 7],
    ]);
  });
});

/** What distinguishes the names of its jobs. */
function keyOf(rig: SlurmBatchRig): string {
  const facts = readFileSync(join(rig.directory, 'ncclrun/batch/test-1/slurm.json'), 'utf8');
  return /"key":"([0-9a-f]+)"/u.exec(facts)?.[1] ?? '';
}
