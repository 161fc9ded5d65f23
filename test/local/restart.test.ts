/** Jobs that are started again. */
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { parseResult } from '../rig/result.ts';

/** Rank 1 fails in its first attempts, as `how` says. */
const flaky = (times: number, how = 'exit 3') =>
  `[ $RANK = 1 ] && [ $TORCHELASTIC_RESTART_COUNT -lt ${times} ] && ${how}; echo $RANK $TORCHELASTIC_RESTART_COUNT/$TORCHELASTIC_MAX_RESTARTS; `;
const sh = (script: string) => ['sh', '-c', script];

it('a restart starts all ranks with their numbers and the attempt number', async () => {
  const run = await Command.run([
    '-n',
    '3',
    '--max-restarts',
    '5',
    '--tag-output=none',
    ...sh(`${flaky(2)}[ $TORCHELASTIC_RESTART_COUNT = 2 ] || sleep 1000`),
  ]);
  expect(run.status).toBe(0);
  expect(run.stdout.split('\n')).toEqual(expect.arrayContaining(['0 2/5', '1 2/5', '2 2/5']));
  expect(run.stderr.match(/rank 1 on localhost .* exited with status 3/g)).toHaveLength(2);
  expect(run.stderr).toContain('all ranks are started again (2 of at most 5)');
});

it('the launcher gives up after --max-restarts and reports the number', async () => {
  const { outcome, ...result } = await Command.result([
    '-n',
    '2',
    '--on-failure',
    'restart',
    '--max-restarts',
    '2',
    ...sh(flaky(9)),
  ]);
  expect(result).toMatchObject({ ok: false, exitCode: 3, reason: 'rank-exit', restarts: 2 });
  expect(outcome.status).toBe(3);
});

it('each attempt joins its own communicator', async () => {
  const all = `exec ${process.execPath} --disable-warning=ExperimentalWarning ${join(repository, 'examples/all-reduce.ts')}`;
  const run = await Command.run(['-n', '3', '--max-restarts', '1', ...sh(`${flaky(1, 'kill -9 $$')}${all}`)]);
  expect({ status: run.status, right: run.stdout.includes('every element is 6') }).toEqual({ status: 0, right: true });
});

it('neither an interrupted job nor a missing program is restarted', async () => {
  await using command = Command.start([
    '-n',
    '2',
    '--max-restarts',
    '3',
    '--json',
    ...sh('trap "exit 7" INT; echo up >&2; sleep 1000 & wait'),
  ]);
  await command.line('stderr', /up/);
  command.process.kill('SIGINT');
  const { stdout } = await command.outcome;
  expect(parseResult(stdout)).toMatchObject({ reason: 'interrupt', restarts: 0 });
  const missing = await Command.result(['-n', '2', '--max-restarts', '3', '/no/such/program']);
  expect(missing).toMatchObject({ reason: 'spawn', restarts: 0, exitCode: 127 });
});

it('the time of --timeout counts from the first start', async () => {
  const { outcome, ...result } = await Command.result([
    '-n',
    '1',
    '--max-restarts',
    '1000',
    '--timeout',
    '3',
    ...sh('sleep 0.1; exit 1'),
  ]);
  expect(result).toMatchObject({ reason: 'timeout', exitCode: 124 });
  expect(result.restarts).toBeGreaterThan(0); // no attempt alone lasts that long
  expect(outcome.stderr).toContain('did not end within 3 s');
});

it('a --timeout that expires while an attempt ends still applies', async () => {
  const deaf = 'trap "" TERM; [ $RANK = 1 ] && exit 1; while :; do sleep 0.05; done';
  const options = ['-n', '2', '--max-restarts', '1000', '--timeout', '1.5', '--grace', '3'];
  const { outcome, ...result } = await Command.result([...options, ...sh(deaf)]);
  expect(result).toMatchObject({ reason: 'timeout', exitCode: 124, restarts: 0 });
  expect(outcome.stderr).toMatch(/rank 1 .* exited with status 1\n[^]*did not end within 1.5 s/);
});

it('the output of an attempt ends with a newline', async () => {
  const script = 'printf "half a line $TORCHELASTIC_RESTART_COUNT"; [ $TORCHELASTIC_RESTART_COUNT = 1 ]';
  const { status, stdout } = await Command.run(['-n', '1', '--max-restarts', '1', ...sh(script)]);
  expect({ status, stdout }).toEqual({ status: 0, stdout: 'half a line 0\nhalf a line 1' });
});

it('--on-hang restart restarts a job that hangs', async () => {
  const program = `import { init } from 'ncclrun'; const comm = await init(); const first = process.env.TORCHELASTIC_RESTART_COUNT === '0';
    if (first && comm.rank === 1) await new Promise(() => setInterval(() => {}, 1000));
    await comm.barrier(); console.log('through'); await comm[Symbol.asyncDispose]();`;
  const words = [process.execPath, '--input-type=module', '-e', program];
  const run = await Command.run(['-n', '2', '--hang-after', '0.5', '--on-hang', 'restart', '--grace', '0.2', ...words]);
  expect({ status: run.status, through: run.stdout.match(/through/g)?.length }).toEqual({ status: 0, through: 2 });
  expect(run.stderr).toContain('all ranks are started again (1 of at most 3)');
});
