/** The agent's directory for its socket: made where that is possible, and gone with an agent that could not begin. */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeIf } from '../rig/capability.ts';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';

const notRoot = process.getuid?.() === 0 ? null : 'mounts, and becoming another user, need root';
/** Nobody's in the password database. */
const USER = 45_679;

let directory = '';
beforeAll(() => {
  directory = mkdtempSync('/var/tmp/ncclrun-runtime-');
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const leftOf = (user: number): string[] => readdirSync('/tmp').filter((name) => name.startsWith(`ncclrun-${user}-`));

/** A program that stands for a remote shell, as --rsh takes it. */
function shellScript(name: string, ...lines: readonly string[]): string {
  const path = join(directory, name);
  writeFileSync(path, ['#!/bin/sh', 'shift', ...lines, ''].join('\n'), { mode: 0o755 });
  return path;
}

it('the agent removes its runtime directory when the guardian cannot be started', async () => {
  const installation = join(directory, 'without-guardian');
  for (const part of ['bin', 'dist', 'package.json', 'build/ncclrun.node', 'build/libnccl.so.2']) {
    mkdirSync(dirname(join(installation, part)), { recursive: true });
    cpSync(join(repository, part), join(installation, part), { recursive: true });
  }
  symlinkSync(join(repository, 'node_modules'), join(installation, 'node_modules'));
  const base = mkdtempSync('/tmp/run-');
  try {
    const environment = { XDG_RUNTIME_DIR: base };
    const program = join(installation, 'bin/ncclrun');
    const { status, stderr } = await Command.run(['-n', '1', 'true'], { program, environment });
    expect({ status, stderr }).toEqual({
      status: 125,
      stderr: expect.stringMatching(/ncclrun-guardian: .*\(ENOENT\)/),
    });
    expect(readdirSync(base)).toEqual([]);
  } finally {
    rmSync(base, { recursive: true });
  }
});

describeIf(notRoot, 'a host with a restricted file system', () => {
  it('ranks start in / when the user has neither a home directory nor a passwd entry', async () => {
    const own = join(directory, 'gone');
    mkdirSync(own);
    const rsh = shellScript(
      'no-home',
      `rmdir ${own} 2>/dev/null`,
      `exec setpriv --reuid=${USER} --regid=${USER} --clear-groups env -i PATH=/usr/bin:/bin sh -c "$*"`,
    );
    const argv = ['--rsh', rsh, '--stage', 'never', '-H', 'a:1', 'pwd'];
    const { status, stdout, stderr } = await Command.run(argv, { directory: own });
    expect({ status, stdout, stderr }).toEqual({
      status: 0,
      stdout: '/\n',
      stderr: expect.stringContaining(`there is no ${own}; the ranks run in /`),
    });
    expect(leftOf(USER)).toEqual([]);
  });

  it.each([
    ['uses another directory', ['/tmp'], 0, /^\/dev\/shm\//],
    [
      'reports that no directory is writable',
      ['/tmp', '/dev/shm', '/var/tmp'],
      125,
      /no directory can be made for the agent's socket: .*EROFS/,
    ],
  ])('the agent on a read-only /tmp %s', async (_, readOnly, wanted, output) => {
    const mounts = readOnly.map((path) => `mount -t tmpfs -o ro tmpfs ${path}`);
    const script = ['mount --make-rprivate /', ...mounts, 'exec "$@"'].join(' && ');
    const job = [join(repository, 'bin/ncclrun'), '-n', '1', 'sh', '-c', 'echo $NCCLRUN_AGENT'];
    const environment = { XDG_RUNTIME_DIR: undefined, TMPDIR: undefined };
    const argv = ['-m', 'sh', '-c', script, 'sh', ...job];
    const { status, stdout, stderr } = await Command.run(argv, { program: 'unshare', environment });
    expect(status).toBe(wanted);
    expect(stdout + stderr).toMatch(output);
    const [agent = ''] = stdout.split('\n');
    expect(agent === '' || !existsSync(dirname(agent))).toBe(true);
  });
});
