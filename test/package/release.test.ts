/** What `npm run release` makes: installed offline, without a compiler, wherever users put it. */
import { spawnSync, type SpawnSyncReturns } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { neededFiles } from '../../launcher/remote/staging/file-names.ts';
import { describeIf } from '../rig/capability.ts';
import { repository } from '../rig/cluster.ts';

const directory = mkdtempSync(join(tmpdir(), 'ncclrun-release-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
const packages = join(directory, 'packages');
const machine = `linux-${process.arch}`;

const program = `
import { init } from 'ncclrun';
await using communicator = await init();
const [sum] = await communicator.allReduce(Float32Array.of(communicator.rank + 1));
console.log('sum', sum);
`;

type Output = Pick<SpawnSyncReturns<string>, 'status' | 'stdout' | 'stderr'>;
function run(file: string, argv: readonly string[], options: { cwd?: string; env?: NodeJS.ProcessEnv } = {}): Output {
  const { status, stdout, stderr } = spawnSync(file, argv, { encoding: 'utf8', cwd: directory, ...options });
  return { status, stdout, stderr };
}

/** The sentence why there is none, or null. */
function release(): string | null {
  const argv = ['scripts/release.mjs', '--uncommitted', '--kernels', 'none', '--out', packages];
  const { status, stderr } = run(process.execPath, argv, { cwd: repository });
  return status === 0 ? null : `node ${argv.join(' ')}: ${stderr.trim()}`;
}

function tarball(name: string): string {
  const found = readdirSync(packages).find((file) => file.startsWith(name) && file.endsWith('.tgz'));
  if (found === undefined) throw new Error(`no ${name} among ${readdirSync(packages).join(', ')}`);
  return join(packages, found);
}

/** A directory with npm and what it needs. */
function withoutCompilers(): string {
  const tools = join(directory, 'tools');
  if (existsSync(tools)) return tools;
  mkdirSync(tools);
  symlinkSync(process.execPath, join(tools, 'node'));
  for (const name of ['npm', 'sh']) symlinkSync(run('which', [name]).stdout.trim(), join(tools, name));
  return tools;
}

/** Neither the registry nor a cache, no compiler, and a directory with a blank in its name. */
function install(name: string, what: readonly string[]): string {
  const place = join(directory, name);
  mkdirSync(place);
  writeFileSync(join(place, 'package.json'), JSON.stringify({ name: 'elsewhere', private: true, type: 'module' }));
  writeFileSync(join(place, 'program.ts'), program);
  const bare = { PATH: withoutCompilers(), HOME: join(directory, 'home') };
  const options = ['--offline', '--no-audit', '--no-fund', '--loglevel=error', '--cache', join(directory, 'cache')];
  const npm = run('npm', ['install', ...options, ...what], { cwd: place, env: { ...process.env, ...bare } });
  expect(npm).toMatchObject({ status: 0, stderr: '' });
  return place;
}

const sums = (stdout: string): string[] => stdout.trim().split('\n').toSorted();
const threeSums = ['[0] sum 6', '[1] sum 6', '[2] sum 6'];

describeIf(release(), 'a release', () => {
  it('the release contains six files with matching checksums', () => {
    const names = readdirSync(packages);
    expect(names).toHaveLength(6);
    expect(run('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: packages })).toMatchObject({ status: 0 });
  });

  it('the packages have every file that a host must have', () => {
    const list = ['ncclrun-0', `ncclrun-${machine}`]
      .map((name) => run('tar', ['-tzf', tarball(name)]).stdout)
      .join('\n');
    const files = new Set(list.split('\n').map((line) => line.replace('package/', '')));
    expect(neededFiles.filter((name) => !files.has(name))).toEqual([]);
  });

  it('the npm package has no scripts, no dependencies and only its own files', () => {
    const list = run('tar', ['-tzf', tarball('ncclrun-0')]).stdout;
    expect(list).toContain('package/dist/worker/index.d.ts');
    expect(list).not.toMatch(/package\/(build|launcher|control|native|test|scripts)\//);
    const manifest: unknown = JSON.parse(run('tar', ['-xzOf', tarball('ncclrun-0'), 'package/package.json']).stdout);
    expect(manifest).not.toHaveProperty('scripts');
    expect(manifest).not.toHaveProperty('dependencies');
    expect(manifest).toHaveProperty(['optionalDependencies', `@ncclrun/${machine}`]);
  });

  describe('the npm packages', () => {
    let place = '';
    const ncclrun = (...argv: string[]): Output => run(join(place, 'node_modules/.bin/ncclrun'), argv, { cwd: place });

    it('npm installs the packages offline and without a compiler', () => {
      place = install('a place', [tarball('ncclrun-0'), tarball(`ncclrun-${machine}`)]);
    });

    it('the installed command runs jobs, measures and prints its prefix', () => {
      expect(ncclrun('-n', '2', '--tag-output=none', '/bin/echo', 'hi')).toEqual({
        status: 0,
        stdout: 'hi\nhi\n',
        stderr: '',
      });
      expect(ncclrun('perf', 'all_reduce', '-n', '2', '-e', '1K', '--check')).toMatchObject({ status: 0, stderr: '' });
      const prefix = ncclrun('prefix').stdout.trim();
      expect(readFileSync(join(prefix, 'lib/libnccl.so.2')).length).toBeGreaterThan(1e6);
      expect(ncclrun('man').stdout).toBe(readFileSync(join(place, 'node_modules/ncclrun/dist/man/ncclrun.1'), 'utf8'));
    });

    it('a program can import the installed package', () => {
      const { status, stdout, stderr } = ncclrun('-n', '3', 'program.ts');
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
      expect(sums(stdout)).toEqual(threeSums);
    });

    it('Node comes from its own package and not as a command of the user', () => {
      const withNode = install('with Node', ['ncclrun-0', `ncclrun-${machine}`, 'node-linux'].map(tarball));
      expect(existsSync(join(withNode, 'node_modules/.bin/node'))).toBe(false);
      const old = join(directory, 'old-tools');
      mkdirSync(old);
      writeFileSync(join(old, 'node'), '#!/bin/sh\necho v18.0.0\n', { mode: 0o755 });
      const env = { ...process.env, PATH: `${old}:/usr/bin:/bin` };
      const command = run(join(withNode, 'node_modules/.bin/ncclrun'), ['-n', '3', 'program.ts'], {
        cwd: withNode,
        env,
      });
      expect({ ...command, stdout: sums(command.stdout) }).toEqual({ status: 0, stdout: threeSums, stderr: '' });
    });

    it('the command names the optional package that is missing', () => {
      const alone = install('alone', [tarball('ncclrun-0')]);
      const sentence = `the package @ncclrun/${machine} is missing, which has its native code; npm install --include=optional brings it`;
      const command = run(join(alone, 'node_modules/.bin/ncclrun'), ['-n', '1', '/bin/true'], { cwd: alone });
      expect(command).toEqual({ status: 125, stdout: '', stderr: `ncclrun: ${sentence}\n` });
      const { stderr } = run(process.execPath, ['program.ts'], { cwd: alone });
      expect(stderr).toContain(`npm install --include=optional brings @ncclrun/${machine}, which has it.`);
    });
  });

  describe('the single archive', () => {
    const home = join(directory, 'unpacked');
    const command = (): string => join(home, readdirSync(home)[0] ?? '', 'bin/ncclrun');

    it('the unpacked archive runs with its own Node, also for programs elsewhere', () => {
      mkdirSync(home);
      const archive = join(packages, readdirSync(packages).find((name) => name.endsWith(`${machine}.tar.zst`)) ?? '');
      expect(run('tar', ['-xf', archive, '-C', home])).toMatchObject({ status: 0, stderr: '' });
      mkdirSync(join(directory, 'elsewhere'));
      writeFileSync(join(directory, 'elsewhere/program.mts'), program);
      const { status, stdout, stderr } = run(command(), ['-n', '3', join(directory, 'elsewhere/program.mts')], {
        env: { PATH: '/usr/bin:/bin' },
      });
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
      expect(sums(stdout)).toEqual(threeSums);
    });

    it.skipIf(process.getuid?.() !== 0)('the unpacked archive runs as a user who may not write to it', () => {
      for (const path of [directory, home]) chmodSync(path, 0o755);
      const words = [
        '--reuid=65534',
        '--regid=65534',
        '--clear-groups',
        command(),
        '-n',
        '2',
        '--tag-output=none',
        '/bin/echo',
        'hi',
      ];
      const env = { PATH: '/usr/bin:/bin', HOME: '/nonexistent' };
      expect(run('setpriv', words, { env })).toEqual({ status: 0, stdout: 'hi\nhi\n', stderr: '' });
    });

    it('the unpacked archive works after it was moved', () => {
      const moved = join(directory, 'moved');
      cpSync(home, moved, { recursive: true, verbatimSymlinks: true });
      rmSync(home, { recursive: true });
      const there = join(moved, readdirSync(moved)[0] ?? '', 'bin/ncclrun');
      expect(run(there, ['-n', '2', '--tag-output=none', '/bin/echo', 'hi'])).toMatchObject({
        status: 0,
        stdout: 'hi\nhi\n',
      });
    });
  });
});
