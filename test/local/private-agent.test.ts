/** Processes that ncclrun has not started: a private agent serves them and ends with them. */
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { chmod, chown, copyFile, cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { describeIf, findProgram } from '../rig/capability.ts';
import { repository } from '../rig/cluster.ts';
import { Command, type Outcome } from '../rig/command.ts';
import { compileOtherNccl, compileWithEngine, compileWithLibrary } from '../rig/compile.ts';
import { killHard } from '../rig/faults.ts';
import { until } from '../rig/until.ts';

const engine = join(repository, 'build/libnccl.so.2');
let directory = '';
let program = '';
beforeAll(async () => {
  directory = await mkdtemp(join(repository, 'build/test-private-'));
  program = await compileWithEngine('test/rig/programs/plain.c', directory);
});
afterAll(() => rm(directory, { recursive: true }));

/** Where ids travel. */
const meeting = (): Promise<string> => mkdtemp(join(directory, 'ids-'));

/** Ranks that a plain shell starts; its status is that of the last one that ended badly. */
const ranks = 'r=0; while [ $r -lt $0 ]; do RANK=$r WORLD_SIZE=$0 "$@" & r=$((r+1)); done; wait';
const shell = (count: number, ...argv: readonly string[]): readonly string[] => ['-c', ranks, String(count), ...argv];
const oks = (count: number): string[] => Array.from({ length: count }, (_, rank) => `ok ${rank}`);
const lines = ({ stdout }: Outcome): string[] => stdout.trim().split('\n').toSorted();

/** The private agent of a command's processes. */
function agentOf(command: Command): number | null {
  return command.survivors().find(({ argv }) => argv.at(-1) === 'private')?.pid ?? null;
}

/** The name of the socket that a private agent listens at. */
function socketOf(agent: number): string {
  const inode = /\d+/.exec(readlinkSync(`/proc/${agent}/fd/3`))?.[0] ?? '';
  const line = socketLines().find((text) => text.split(/\s+/)[6] === inode);
  return line?.split(/\s+/)[7] ?? '';
}
const socketLines = (): string[] => readFileSync('/proc/net/unix', 'utf8').split('\n');

/** Ranks that hold on to each other, by rank the pid. */
async function holding(command: Command, ids: string, count: number): Promise<readonly number[]> {
  const ready = (): string[] => readdirSync(ids).filter((name) => name.startsWith('ready-'));
  await until('every rank has joined', () => ready().length === count);
  expect(command.survivors().filter(({ argv }) => argv[0] === program)).toHaveLength(count);
  const pids = ready().map((name) => name.split('-').map(Number));
  return Array.from({ length: count }, (_, rank) => pids.find(([, , of]) => of === rank)?.[1] ?? 0);
}

describe('ranks that a plain shell starts', () => {
  it('ranks of a shell join, split and create communicators', async () => {
    const outcome = await Command.run(shell(4, program, 'sum', await meeting()), { program: 'sh' });
    expect({ ...outcome, lines: lines(outcome) }).toMatchObject({ status: 0, stderr: '', lines: oks(4) });
  });

  it('a single rank works with all standard streams closed', async () => {
    const closed = ['-c', 'exec "$0" sum "$1" <&- >&- 2>&-', program, await meeting()];
    const environment = { RANK: '0', WORLD_SIZE: '1' };
    expect(await Command.run(closed, { program: 'sh', environment })).toMatchObject({ status: 0 });
  });

  it('ranks with a preloaded engine use it instead of their own library', async () => {
    const other = await compileWithLibrary(
      'test/rig/programs/plain.c',
      await compileOtherNccl(directory),
      await meeting(),
    );
    const outcome = await Command.run(shell(2, other, 'sum', await meeting()), {
      program: 'sh',
      environment: { LD_PRELOAD: engine },
    });
    expect({ ...outcome, lines: lines(outcome) }).toMatchObject({ status: 0, stderr: '', lines: oks(2) });
  });

  it.each([
    ['a common NCCLRUN_SESSION', (): NodeJS.ProcessEnv => ({ NCCLRUN_SESSION: directory })],
    [
      'a common MASTER_ADDR and MASTER_PORT',
      (): NodeJS.ProcessEnv => ({ MASTER_ADDR: '127.0.0.1', MASTER_PORT: `of ${directory}` }),
    ],
  ])('%s lets different ranks create the first communicators', async (_, environment) => {
    const argv = shell(4, program, 'pairs', await meeting());
    const outcome = await Command.run(argv, { program: 'sh', environment: environment() });
    expect({ ...outcome, lines: lines(outcome) }).toMatchObject({ status: 0, stderr: '', lines: oks(4) });
  });

  it('ranks without a common session fail and name NCCLRUN_SESSION', async () => {
    await using command = Command.start(shell(4, program, 'pairs', await meeting()), { program: 'sh' });
    const sentence = await command.line('stderr', /is of session/);
    expect(sentence).toMatch(
      / = 5: .*this process belongs to session [0-9a-f]{32} .*NCCLRUN_SESSION=NAME.*ncclrun -n N/,
    );
    process.kill(-command.pid, 'SIGKILL');
    await command.nothingLeft();
  });
});

describe('the end of ranks and private agent', () => {
  it('the other ranks learn of kill -9 of a rank, and no process remains', async () => {
    const ids = await meeting();
    await using command = Command.start(shell(3, program, 'hold', ids), { program: 'sh' });
    const pids = await holding(command, ids, 3);
    const socket = socketOf(agentOf(command) ?? 0);
    expect(socket).toMatch(/^@ncclrun-\d+-[0-9a-f]{32}$/);
    killHard(pids[2] ?? 0);
    const told = new RegExp(`^6: rank 2 \\(.*, pid ${pids[2]}\\) ended without leaving the communicator$`, 'gm');
    expect((await command.outcome).stdout.match(told)).toHaveLength(2);
    await command.nothingLeft();
    expect(socketLines().filter((line) => line.endsWith(socket))).toEqual([]);
  });

  it('no process remains after kill -9 of all ranks', async () => {
    const ids = await meeting();
    await using command = Command.start(shell(3, program, 'hold', ids), { program: 'sh' });
    await holding(command, ids, 3);
    const agent = agentOf(command) ?? 0;
    process.kill(-command.pid, 'SIGKILL');
    expect(socketOf(agent)).not.toBe('');
    await command.nothingLeft();
  });

  it('ranks end on SIGTERM after kill -9 of their agent', async () => {
    const ids = await meeting();
    await using command = Command.start(shell(3, program, 'hold', ids), { program: 'sh' });
    await holding(command, ids, 3);
    const agent = agentOf(command) ?? 0;
    const socket = socketOf(agent);
    killHard(agent);
    await until('the socket is gone', () => !socketLines().some((line) => line.endsWith(socket)));
    process.kill(-command.pid, 'SIGTERM');
    await command.nothingLeft();
  });

  it('a finished job does not affect the private agent of another one', async () => {
    const ids = await meeting();
    await using held = Command.start(shell(2, program, 'hold', ids), { program: 'sh' });
    await holding(held, ids, 2);
    const agent = agentOf(held);
    expect(await Command.run(shell(2, program, 'sum', await meeting()), { program: 'sh' })).toMatchObject({
      status: 0,
    });
    expect(agentOf(held)).toBe(agent);
    expect(held.survivors()).toHaveLength(3);
    process.kill(-held.pid, 'SIGKILL');
    await held.nothingLeft();
  });
});

it.each([['of their own'], ['in common']])('six simultaneous jobs succeed with a session %s', async (how) => {
  const environment = how === 'of their own' ? {} : { NCCLRUN_SESSION: await meeting() };
  const all = `for ids in "$@"; do sh -c '${ranks}' 2 "$0" sum "$ids" & done; wait`;
  const meetings = await Promise.all(Array.from({ length: 6 }, meeting));
  const outcome = await Command.run(['-c', all, program, ...meetings], { program: 'sh', environment });
  const expected = oks(2).flatMap((line) => meetings.map(() => line));
  expect({ ...outcome, lines: lines(outcome) }).toMatchObject({ status: 0, stderr: '', lines: expected });
});

it('eight consecutive jobs succeed in one session', async () => {
  const one = `for turn in 1 2 3 4 5 6 7 8; do RANK=0 WORLD_SIZE=1 "$0" sum "$1" || exit; rm "$1"/*; done`;
  const environment = { NCCLRUN_SESSION: await meeting() };
  const outcome = await Command.run(['-c', one, program, await meeting()], { program: 'sh', environment });
  expect(outcome).toMatchObject({ status: 0, stderr: '', stdout: 'ok 0\n'.repeat(8) });
});

it('a program that starts itself once per rank succeeds', async () => {
  const argv = ['--disable-warning=ExperimentalWarning', 'test/rig/programs/spawns.ts', await meeting()];
  const outcome = await Command.run(argv, { program: process.execPath });
  expect({ ...outcome, lines: lines(outcome) }).toMatchObject({ status: 0, stderr: '', lines: oks(4) });
});

describeIf(findProgram('mpirun') === null ? 'mpirun is not installed' : null, 'ranks that mpirun starts', () => {
  const mpirun = ['--allow-run-as-root', '--oversubscribe', '--bind-to', 'core:overload-allowed', '-n', '4'];
  it.each(['sum', 'pairs'])('ranks that mpirun starts complete the program mode %s', async (mode) => {
    const outcome = await Command.run([...mpirun, program, mode, await meeting()], { program: 'mpirun' });
    expect({ ...outcome, lines: lines(outcome) }).toMatchObject({ status: 0, lines: oks(4) });
  });
});

/** One rank that cannot join, and why. */
const alone = async (environment: NodeJS.ProcessEnv): Promise<string> => {
  const whole = { RANK: '0', WORLD_SIZE: '1', ...environment };
  const { status, stderr } = await Command.run(['sum', await meeting()], { program, environment: whole });
  expect(status).toBe(1);
  return stderr;
};

describe('a private agent that cannot be started', () => {
  it('the engine names a NCCLRUN_NODE that does not exist', async () => {
    expect(await alone({ NCCLRUN_NODE: '/nowhere/node' })).toMatch(
      / = 2: .*NCCLRUN_NODE=\/nowhere\/node: there is no program.*Node 22\.18 or newer.*ncclrun -n N PROGRAM/,
    );
  });

  it('the engine shows the error of a NCCLRUN_NODE that is another program', async () => {
    const old = join(directory, 'old-node');
    await writeFile(old, '#!/bin/sh\necho "$0: bad option: $1" >&2; exit 9\n', { mode: 0o755 });
    expect(await alone({ NCCLRUN_NODE: old })).toMatch(
      /the private agent \(\/.*\/old-node \/.*\/agent\.cjs\) ended before it answered: .*bad option: --inspect-port.*NCCLRUN_NODE/,
    );
  });

  it.skipIf(process.getuid?.() !== 0)('the engine does not execute a NCCLRUN_NODE of another user', async () => {
    const planted = join(directory, 'planted-node');
    const evidence = join(directory, 'executed');
    await writeFile(planted, `#!/bin/sh\ntouch ${evidence}\n`, { mode: 0o755 });
    await chown(planted, 12345, 12345);
    expect(await alone({ NCCLRUN_NODE: planted })).toMatch(
      /NCCLRUN_NODE=\/.*\/planted-node is not executed, it may be another user's: \/.*\/planted-node belongs to user id 12345/,
    );
    expect(existsSync(evidence)).toBe(false);
  });

  it.skipIf(process.getuid?.() !== 0)('the engine does not execute an agent that others may write to', async () => {
    const root = join(await meeting(), 'root');
    await mkdir(join(root, 'build'), { recursive: true });
    await copyFile(engine, join(root, 'build/libnccl.so.2'));
    await copyFile(join(repository, 'build/ncclrun.node'), join(root, 'build/ncclrun.node'));
    await cp(join(repository, 'dist/bundle'), join(root, 'dist/bundle'), { recursive: true });
    await chmod(join(root, 'dist/bundle/agent.code'), 0o666);
    expect(await alone({ LD_PRELOAD: join(root, 'build/libnccl.so.2') })).toMatch(
      /is not executed, it may be another user's: others may write to \/.*\/dist\/bundle\/agent\.code \(mode 666\)/,
    );
    await chmod(join(root, 'dist/bundle/agent.code'), 0o644);
    const whole = { RANK: '0', WORLD_SIZE: '1', LD_PRELOAD: join(root, 'build/libnccl.so.2') };
    expect(await Command.run(['sum', await meeting()], { program, environment: whole })).toMatchObject({ status: 0 });
  });

  it('the engine names the missing agent of a library outside its installation', async () => {
    const copy = join(await meeting(), 'libnccl.so.2');
    await copyFile(engine, copy);
    const stderr = await alone({ LD_PRELOAD: copy });
    expect(stderr).toMatch(
      /there is no \/.*\/dist\/bundle\/agent\.cjs beside this library \(.*\).*where ncclrun is installed/,
    );
    expect(stderr).toContain(copy);
  });
});
