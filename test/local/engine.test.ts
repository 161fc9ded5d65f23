/** --engine ncclrun: programs that come with an NCCL of their own run on ours. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { compileOtherNccl, compileWithLibrary } from '../rig/compile.ts';
import { environments } from '../rig/rank-environment.ts';

const engine = join(repository, 'build/libnccl.so.2');
let directory = '';
let other = '';
let program = '';
beforeAll(async () => {
  directory = await mkdtemp(join(repository, 'build/test-engine-'));
  other = await compileOtherNccl(directory);
  program = await compileWithLibrary('test/rig/programs/plain.c', other, directory);
});
afterAll(() => rm(directory, { recursive: true }));

async function sum(...options: readonly string[]) {
  const ids = await mkdtemp(join(directory, 'ids-'));
  return Command.run([...options, '-n', '3', '--tag-output=none', program, 'sum', ids]);
}

it.each([[[]], [['--engine', 'none']]])('the options %j leave a program its own library', async (options) => {
  const { status, stderr } = await sum(...options);
  expect(status).toBe(1);
  expect(stderr).toMatch(/ncclGetUniqueId\(id\) = 3: the program's own library was called/);
});

it('--engine ncclrun preloads our library into every rank', async () => {
  const { status, stdout, stderr } = await sum('--engine', 'ncclrun');
  expect({ status, lines: stdout.trim().split('\n').toSorted(), stderr }).toEqual({
    status: 0,
    lines: ['ok 0', 'ok 1', 'ok 2'],
    stderr: '',
  });
});

it('--engine ncclrun keeps other preloaded libraries after ours', async () => {
  const argv = ['--engine', 'ncclrun', '-n', '1'];
  expect(await environments(argv)).toMatchObject([{ LD_PRELOAD: engine }]);
  const given = { environment: { LD_PRELOAD: other } };
  expect(await environments(argv, given)).toMatchObject([{ LD_PRELOAD: `${engine}:${other}` }]);
  expect(await environments([...argv, '-x', `LD_PRELOAD=${other}`])).toMatchObject([
    { LD_PRELOAD: `${engine}:${other}` },
  ]);
  const [plain] = await environments(['-n', '1']);
  expect(plain).not.toHaveProperty('LD_PRELOAD');
});

it('each program of a job keeps its own preloaded libraries', async () => {
  const argv = ['--engine', 'ncclrun', '--tag-output=none', '-n', '1', '-x', `LD_PRELOAD=${other}`];
  const print = ['sh', '-c', 'echo $RANK $LD_PRELOAD'];
  const { stdout } = await Command.run([...argv, ...print, ':', '-n', '1', ...print]);
  expect(stdout.trim().split('\n').toSorted()).toEqual([`0 ${engine}:${other}`, `1 ${engine}`]);
});

it('--dry-run shows the engine, and a misspelt engine gets a suggestion', async () => {
  const { stdout } = await Command.run(['--engine', 'ncclrun', '-n', '1', '--dry-run', 'true']);
  expect(stdout).toMatch(/^command {2}ncclrun -n 1 --engine ncclrun true$/m);
  const { status, stderr } = await Command.run(['--engine', 'nclrun', '-n', '1', 'true']);
  expect({ status, stderr }).toEqual({
    status: 2,
    stderr: expect.stringMatching(/--engine is "nclrun"[^]*did you mean ncclrun\? one of none, ncclrun is wanted/),
  });
});

const runOf = (home: string) =>
  Command.run(['--engine', 'ncclrun', '-n', '1', 'true'], { program: join(home, 'bin/ncclrun') });

describe('an installation whose library cannot be preloaded', () => {
  const build = ['libnccl.so.2', 'ncclrun.node', 'ncclrun-guardian'].map((name) => `build/${name}`);
  const copy = async (name: string) => {
    const home = join(directory, name);
    const files = ['bin', 'dist', 'package.json', ...build];
    const argv = ['-c', 'mkdir "$0" && cp -rl --parents "$@" "$0"', home, ...files];
    expect(await Command.run(argv, { program: 'sh' })).toMatchObject({ status: 0, stderr: '' });
    return home;
  };
  it('the launcher rejects an installation path that contains a space', async () => {
    const { status, stderr } = await runOf(await copy('a b'));
    expect(status).toBe(125);
    expect(stderr).toMatch(/LD_PRELOAD cannot name \/.*\/a b\/build\/libnccl\.so\.2: its path has a space/);
    expect(stderr).toMatch(/next: install ncclrun in a directory without them/);
  });

  it('the launcher names an installation without the library', async () => {
    const home = await copy('without');
    await rm(join(home, 'build/libnccl.so.2'));
    const { status, stderr } = await runOf(home);
    expect(status).toBe(125);
    expect(stderr).toMatch(/the engine cannot be read: ENOENT.*without\/build\/libnccl\.so\.2/);
    expect(stderr).toMatch(/next: install ncclrun there again/);
  });
});
