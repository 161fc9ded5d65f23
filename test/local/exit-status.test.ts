/** What `$?` is after each way in which a job can end, and whom the result names. */
import { chmod, copyFile, mkdir, mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { describeIf, otherUsersUnavailable } from '../rig/capability.ts';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { Steering } from '../rig/steering.ts';

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'ncclrun-exit-'));
});
afterAll(() => rm(directory, { recursive: true }));

describe('a successful job', () => {
  it('the launcher starts a rank per core when no option gives a number', async () => {
    const result = await Command.result(['/bin/true']);
    expect(result).toMatchObject({ ok: true, exitCode: 0 });
    expect(result.ranks).toHaveLength(availableParallelism());
  });

  it('the launcher exits with 0 and prints nothing', async () => {
    const { status, stdout, stderr } = await Command.run(['-n', '4', '/bin/true']);
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: '', stderr: '' });
  });
});

describe('a rank that fails', () => {
  it("the launcher exits with the rank's exit status, names the rank and ends the others", async () => {
    await using steering = await Steering.open();
    await using command = Command.start(['--json', '-n', '3', ...steering.options, steering.program]);
    const [, second] = await steering.ranks(3);
    await second?.exit(3);
    const { status, stdout, stderr } = await command.outcome;
    const result: unknown = JSON.parse(stdout);
    expect(status).toBe(3);
    expect(result).toMatchObject({
      ok: false,
      reason: 'rank-exit',
      exitCode: 3,
      failures: [{ type: 'rank-exit', rank: 1, exitCode: 3 }],
      ranks: [
        { rank: 0, endedByUs: true },
        { rank: 1, exitCode: 3, signal: null, endedByUs: false },
        { rank: 2, endedByUs: true },
      ],
    });
    expect(stderr).toMatch(/rank 1 on .*exited with status 3/);
    await command.nothingLeft(0);
  });

  it('the launcher exits with 128 plus the signal number and names the signal', async () => {
    await using steering = await Steering.open();
    await using command = Command.start(['--json', '-n', '2', ...steering.options, steering.program]);
    const [first] = await steering.ranks(2);
    await first?.kill('SIGKILL');
    const { status, stdout } = await command.outcome;
    expect(status).toBe(137);
    expect(JSON.parse(stdout)).toMatchObject({
      reason: 'rank-signal',
      failures: [{ type: 'rank-signal', rank: 0, signal: 'SIGKILL' }],
    });
  });

  it('the result separates the failing rank from the ranks that the launcher ended', async () => {
    // The others answer SIGTERM with a status of their own; the first one's counts.
    const script = 'if [ "$RANK" = 2 ]; then exit 7; fi; trap "exit 9" TERM INT; while :; do sleep 0.01; done';
    const result = await Command.result(['-n', '4', 'sh', '-c', script]);
    expect(result).toMatchObject({ exitCode: 7, reason: 'rank-exit', failures: [{ rank: 2, exitCode: 7 }] });
    expect(result.ranks.filter((rank) => rank.endedByUs).map((rank) => rank.rank)).toEqual([0, 1, 3]);
  });

  it('the launcher kills a rank that ignores SIGTERM after --grace', async () => {
    const script =
      'if [ "$RANK" = 1 ]; then exit 5; fi; trap "" TERM INT HUP; echo there; while :; do sleep 0.05; done';
    const started = performance.now();
    const { status } = await Command.run(['-n', '2', '--grace', '0.5', 'sh', '-c', script]);
    expect(status).toBe(5);
    expect(performance.now() - started).toBeLessThan(4000);
  });

  it('a job ends with 0 when one rank exits before the others', async () => {
    await using steering = await Steering.open();
    await using command = Command.start(['-n', '2', ...steering.options, steering.program]);
    const [first, second] = await steering.ranks(2);
    await first?.exit(0);
    await second?.print('still here\n');
    await second?.exit(0);
    expect(await command.outcome).toMatchObject({ status: 0, stdout: '[1] still here\n' });
  });
});

describe('a program that cannot be started', () => {
  it('the launcher exits with 127 and names host and rank when the program does not exist', async () => {
    const { exitCode, reason, failures, outcome, hosts } = await Command.result(['-n', '2', 'no-such-program-here']);
    expect({ exitCode, reason, status: outcome.status }).toEqual({ exitCode: 127, reason: 'spawn', status: 127 });
    expect(failures[0]).toMatchObject({ type: 'spawn', rank: 0, cause: 'not-found', errno: 'ENOENT' });
    expect(outcome.stderr).toContain('no-such-program-here');
    expect(outcome.stderr).toContain(hosts[0]?.name);
  });

  it('the launcher exits with 126 when the program is not executable', async () => {
    const file = join(directory, 'not-executable');
    await writeFile(file, '#!/bin/sh\n');
    await chmod(file, 0o644);
    const { exitCode, failures, outcome } = await Command.result(['-n', '2', file]);
    expect({ exitCode, status: outcome.status }).toEqual({ exitCode: 126, status: 126 });
    expect(failures[0]).toMatchObject({ type: 'spawn', cause: 'not-executable', errno: 'EACCES' });
  });

  it.each([
    ['of another processor', Buffer.concat([Buffer.from([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]), Buffer.alloc(200)])],
    ['that is no text', Buffer.from([0, 1, 2, 3])],
  ])('the launcher exits with 126 for a file %s, which no shell reads', async (name, content) => {
    const file = join(directory, name);
    await writeFile(file, content, { mode: 0o755 });
    const { exitCode, failures, outcome } = await Command.result(['-n', '1', file]);
    expect({ exitCode, status: outcome.status }).toEqual({ exitCode: 126, status: 126 });
    expect(failures[0]).toMatchObject({ type: 'spawn', cause: 'not-executable', errno: 'ENOEXEC' });
    expect(outcome.stderr).toMatch(/^ncclrun: cannot start .* this host cannot run it \(ENOEXEC\)\n {2}next: build it/);
  });

  it('a script without a first line for the kernel is run by the shell', async () => {
    const file = join(directory, 'plain-script');
    await writeFile(file, 'echo "plain $1"\n', { mode: 0o755 });
    expect(await Command.run(['-n', '1', file, 'word'])).toMatchObject({
      status: 0,
      stdout: 'plain word\n',
      stderr: '',
    });
  });

  it('the launcher exits with 126 for a program that somebody is writing', async () => {
    const file = join(directory, 'busy');
    await copyFile('/bin/true', file);
    await using writer = await open(file, 'r+');
    expect(writer.fd).toBeGreaterThan(2);
    const { status, stderr } = await Command.run(['-n', '1', file]);
    expect(status).toBe(126);
    expect(stderr).toContain('the file is being written (ETXTBSY)');
    expect(stderr).toContain('fuser -v');
  });

  it('the launcher exits with 126 and a remedy for a variable that is too long', async () => {
    await writeFile(join(directory, 'ncclrun.json'), JSON.stringify({ export: [`LONG=${'x'.repeat(200_000)}`] }));
    const { status, stderr } = await Command.run(['-n', '1', 'true'], { directory });
    expect(status).toBe(126);
    expect(stderr).toContain('its arguments and variables are too long (E2BIG)');
    expect(stderr).toContain('less than 128 KiB each');
  });

  it('the launcher names a working directory that does not exist', async () => {
    const { failures, outcome } = await Command.result(['-n', '1', '--wdir', '/no/such/directory', '/bin/true']);
    expect(failures[0]).toMatchObject({ type: 'spawn', cause: 'working-directory' });
    expect(outcome.stderr).toContain('/no/such/directory');
  });
});

const launcher = join(repository, 'bin/ncclrun');
describeIf(otherUsersUnavailable(launcher), 'a user who is not root', () => {
  it('a home directory that cannot be searched is no obstacle and no news', async () => {
    const home = join(directory, 'closed');
    await mkdir(home, { mode: 0o700 });
    await chmod(directory, 0o711);
    const job = [launcher, '-n', '1', 'echo', 'ran'];
    const argv = ['--reuid=23456', '--regid=23456', '--clear-groups', 'env', `HOME=${home}`, ...job];
    expect(await Command.run(argv, { program: 'setpriv', directory: '/' })).toMatchObject({
      status: 0,
      stdout: 'ran\n',
      stderr: '',
    });
  });
});

describe('limits and signals', () => {
  it('MPIEXEC_TIMEOUT has the effect of --timeout', async () => {
    const { status } = await Command.run(['-n', '1', 'sleep', '1000'], { environment: { MPIEXEC_TIMEOUT: '0.3' } });
    expect(status).toBe(124);
  });

  it('the launcher exits with 124 after --timeout', async () => {
    await using steering = await Steering.open();
    await using command = Command.start([
      '--json',
      '--timeout',
      '0.3',
      '-n',
      '2',
      ...steering.options,
      steering.program,
    ]);
    const { status, stdout } = await command.outcome;
    expect(status).toBe(124);
    expect(JSON.parse(stdout)).toMatchObject({ reason: 'timeout', exitCode: 124 });
    await command.nothingLeft(0);
  });

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('%s ends the job with exit status %i and leaves no process', async (signal, expected) => {
    await using steering = await Steering.open();
    await using command = Command.start(['--json', '-n', '3', ...steering.options, steering.program]);
    await steering.ranks(3);
    command.signal(signal);
    const { status, stdout } = await command.outcome;
    expect(status).toBe(expected);
    expect(JSON.parse(stdout)).toMatchObject({ reason: 'interrupt', exitCode: expected });
    await command.nothingLeft(0);
  });

  it('the launcher forwards the first SIGINT and kills the ranks only after the second', async () => {
    await using steering = await Steering.open();
    await using command = Command.start(['--grace', '0.2', '-n', '1', ...steering.options, steering.program]);
    const rank = await steering.rank(0);
    await rank.tell({ do: 'ignore', signals: ['SIGINT', 'SIGTERM'] });
    const arrived = rank.tell({ do: 'awaitSignal', signal: 'SIGINT' });
    await command.line('stderr', /rank waits for SIGINT/);
    command.signal('SIGINT');
    await arrived;
    command.signal('SIGINT');
    expect((await command.outcome).status).toBe(130);
    await command.nothingLeft(0);
  });

  it('the launcher forwards SIGUSR2 and the job continues', async () => {
    await using steering = await Steering.open();
    await using command = Command.start(['-n', '1', ...steering.options, steering.program]);
    const rank = await steering.rank(0);
    const arrived = rank.tell({ do: 'awaitSignal', signal: 'SIGUSR2' });
    await command.line('stderr', /rank waits for SIGUSR2/);
    command.signal('SIGUSR2');
    expect(await arrived).toBe('SIGUSR2');
    await rank.exit(0);
    expect((await command.outcome).status).toBe(0);
  });
});
