/** `ncclrun bundle`: the archive for hosts that are installed by hand. */
import { execFileSync } from 'node:child_process';
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { compileOtherNccl, compileWithLibrary } from '../rig/compile.ts';

describe('ncclrun bundle', () => {
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'ncclrun-bundle-'));
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));
  const bundle = (...argv: string[]) =>
    Command.run(['bundle', ...argv], {
      directory,
      environment: { XDG_CACHE_HOME: join(repository, 'build/test-cache') },
    });

  it('ncclrun bundle writes an archive of at most 64 MiB that runs from any directory', async () => {
    const { status, stderr } = await bundle();
    expect(status).toBe(0);
    const [file = ''] = await readdir(directory);
    expect(file).toMatch(/^ncclrun-\d+\.\d+\.\d+-\w+-node[\d.]+-linux-\w+\.tar\.gz$/);
    expect(stderr).toContain(file);
    expect(stderr).toContain('next: ');
    expect((await stat(join(directory, file))).size).toBeLessThanOrEqual(64 * 2 ** 20);
    execFileSync('tar', ['-xzf', file], { cwd: directory });
    const [home = ''] = (await readdir(directory)).filter((name) => !name.endsWith('.gz'));
    const program = join(directory, home, 'bin/ncclrun');
    const ran = await Command.run(['-n', '2', 'echo', 'here'], { program, environment: { PATH: '/usr/bin:/bin' } });
    expect(ran).toMatchObject({ status: 0, stdout: expect.stringMatching(/^(\[\d\] here\n){2}$/) });

    // Its library finds what a private agent needs around it.
    const plain = await compileWithLibrary('test/rig/programs/plain.c', await compileOtherNccl(directory), directory);
    const environment = {
      PATH: '/usr/bin:/bin',
      LD_PRELOAD: join(directory, home, 'build/libnccl.so.2'),
      RANK: '0',
      WORLD_SIZE: '1',
    };
    const alone = await Command.run(['sum', directory], { program: plain, environment });
    expect(alone).toMatchObject({ status: 0, stdout: 'ok 0\n', stderr: '' });
  });

  it('ncclrun bundle -o - writes the archive to stdout', async () => {
    const script = `"$0" bundle -o - | tar -tzf - | grep -c ncclrun-guardian`;
    const argv = ['-c', script, join(repository, 'bin/ncclrun')];
    const environment = { XDG_CACHE_HOME: join(repository, 'build/test-cache') };
    expect(await Command.run(argv, { program: 'sh', environment })).toMatchObject({
      status: 0,
      stdout: '1\n',
      stderr: '',
    });
  });

  it.each([
    [['-o', '/nowhere/bundle.tar.gz'], /\/nowhere\/bundle\.tar\.gz cannot be written/],
    [['--ouput', 'x'], /did you mean --output/],
    [['now'], /now/],
  ])('ncclrun bundle rejects the arguments %j', async (argv, text) => {
    const { status, stderr, stdout } = await bundle(...argv);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toMatch(text);
    expect(stderr).toMatch(/next: /);
  });
});
