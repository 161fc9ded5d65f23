/**
 * Settings files, as other users and other people's projects plant them: the real command, run as a user who is not root, with files of a stranger, of
 * root and of that user. What must not be obeyed is ignored with a line that says so; the job runs.
 */
import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, lchownSync, mkdirSync, mkdtempSync, readdirSync } from 'node:fs';
import { readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, expect, it } from 'vitest';
import { describeIf, findProgram, otherUsersUnavailable } from '../rig/capability.ts';
import { repository } from '../rig/cluster.ts';
import { Command, type Outcome } from '../rig/command.ts';

const STRANGER = 12_345;
const USER = 12_346;
const setpriv = findProgram('setpriv');
const cannotBecomeOthers = otherUsersUnavailable(join(repository, 'bin/ncclrun'));

const root = mkdtempSync(join(tmpdir(), 'ncclrun-planted-'));
chmodSync(root, 0o755);
afterAll(() => rmSync(root, { recursive: true }));

/** The user's directory for settings, and a project of the user's, made anew for each test. */
let home = '';
let project = '';
let count = 0;
beforeEach(() => {
  count += 1;
  home = ownedDirectory(`home${count}`, USER);
  project = ownedDirectory(`project${count}`, USER);
});

function ownedDirectory(name: string, owner: number, mode = 0o755): string {
  const path = join(root, name);
  mkdirSync(path);
  chownSync(path, owner, owner);
  chmodSync(path, mode);
  return path;
}

function file(path: string, content: object | string, owner: number, mode = 0o644): string {
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  chownSync(path, owner, owner);
  chmodSync(path, mode);
  return path;
}

const planted = { export: ['PLANTED=yes'] };
/** Prints whether the settings were obeyed. */
const program = ['-n', '1', '/bin/sh', '-c', 'echo "planted: ${PLANTED-no}"'];

function run(
  argv: readonly string[],
  directory = project,
  user = USER,
  environment: NodeJS.ProcessEnv = {},
): Promise<Outcome> {
  return Command.run(
    [`--reuid=${user}`, `--regid=${user}`, '--clear-groups', join(repository, 'bin/ncclrun'), ...argv],
    {
      program: setpriv ?? '',
      directory,
      environment: {
        HOME: home,
        XDG_CONFIG_HOME: join(home, 'config'),
        XDG_CACHE_HOME: join(home, 'cache'),
        ...environment,
      },
    },
  );
}

/** The job runs without the settings, and one line says why, which must contain `reason`. */
async function isIgnored(reason: string, directory = project, user = USER): Promise<void> {
  const { status, stdout, stderr } = await run(program, directory, user);
  expect({ status, stdout }).toEqual({ status: 0, stdout: 'planted: no\n' });
  expect(stderr.split('\n').filter((line) => line !== '')).toEqual([expect.stringContaining(reason)]);
  expect(stderr).toMatch(/^ncclrun: ignored /u);
}

async function isObeyed(directory = project, user = USER): Promise<void> {
  const { status, stdout, stderr } = await run(program, directory, user);
  expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: 'planted: yes\n', stderr: '' });
}

describeIf(cannotBecomeOthers, './ncclrun.json', () => {
  it('the launcher obeys a file whose owner and directory owner is the user', async () => {
    file(join(project, 'ncclrun.json'), planted, USER);
    await isObeyed();
  });

  it('the launcher obeys a file of root', async () => {
    file(join(project, 'ncclrun.json'), planted, 0);
    await isObeyed();
  });

  it('the launcher ignores a file of another user', async () => {
    file(join(project, 'ncclrun.json'), planted, STRANGER);
    await isIgnored(`ignored ./ncclrun.json: it belongs to uid ${STRANGER}, not to you`);
  });

  it('the launcher ignores a file in a directory of another user', async () => {
    const theirs = ownedDirectory(`theirs${count}`, STRANGER);
    file(join(theirs, 'ncclrun.json'), planted, USER);
    await isIgnored(`the directory ${theirs} belongs to uid ${STRANGER}, not to you`, theirs);
  });

  it('the launcher ignores a file below a directory of another user', async () => {
    const theirs = ownedDirectory(`above${count}`, STRANGER);
    const below = ownedDirectory(`above${count}/below`, USER);
    file(join(below, 'ncclrun.json'), planted, USER);
    await isIgnored(`the directory ${theirs} belongs to uid ${STRANGER}, not to you`, below);
  });

  it('the launcher obeys a file below a sticky directory but not one directly in it', async () => {
    const shared = ownedDirectory(`shared${count}`, 0, 0o1777);
    const below = ownedDirectory(`shared${count}/mine`, USER);
    file(join(below, 'ncclrun.json'), planted, USER);
    await isObeyed(below);
    file(join(shared, 'ncclrun.json'), planted, USER);
    await isIgnored(`every user may write to the directory ${shared} (mode 1777)`, shared);
  });

  it.each([
    [0o666, 'every user may write to it (mode 0666)'],
    [0o664, `group ${USER} may write to it (mode 0664)`],
  ])('the launcher ignores a file that others may write to (decimal mode %i)', async (mode, reason) => {
    file(join(project, 'ncclrun.json'), planted, USER, mode);
    await isIgnored(reason);
  });

  it.each([
    [0o777, 'every user may write to the directory'],
    [0o775, `group ${USER} may write to the directory`],
  ])('the launcher ignores a file in a directory that others may write to (decimal mode %i)', async (mode, reason) => {
    file(join(project, 'ncclrun.json'), planted, USER);
    chmodSync(project, mode);
    await isIgnored(reason);
  });

  it('the launcher ignores a symbolic link of another user', async () => {
    const shared = ownedDirectory(`links${count}`, 0);
    const link = join(shared, 'ncclrun.json');
    symlinkSync(file(join(project, 'settings'), planted, USER), link);
    lchownSync(link, STRANGER, STRANGER);
    await isIgnored(`the symbolic link ${link} belongs to uid ${STRANGER}`, shared);
  });

  it("the launcher follows the user's symbolic link only to a file of the user", async () => {
    const target = file(join(project, 'settings'), planted, STRANGER);
    symlinkSync('settings', join(project, 'ncclrun.json'));
    await isIgnored(`it belongs to uid ${STRANGER}`);
    chownSync(target, USER, USER);
    await isObeyed();
  });

  it('root ignores the file of a user', async () => {
    file(join(project, 'ncclrun.json'), planted, 0);
    await isIgnored(`the directory ${project} belongs to uid ${USER}, not to you`, project, 0);
  });

  it.each<[string, (path: string) => void]>([
    ['a pipe', (path) => execFileSync('mkfifo', [path])],
    ['a directory', (path) => mkdirSync(path)],
    ['a device', (path) => execFileSync('mknod', [path, 'c', '1', '5'])],
  ])('the launcher ignores %s in place of the file', async (_, make) => {
    const path = join(project, 'ncclrun.json');
    make(path);
    chownSync(path, USER, USER);
    chmodSync(path, 0o644);
    await isIgnored('it is not a regular file');
  });

  it('the launcher ignores a file that is too long', async () => {
    const path = file(join(project, 'ncclrun.json'), planted, USER);
    truncateSync(path, 2 ** 40);
    await isIgnored('it has 1099511627776 bytes');
  });

  it('an unreadable file of another user does not fail a job', async () => {
    file(join(project, 'ncclrun.json'), 'not JSON', STRANGER, 0o600);
    await isIgnored(`it belongs to uid ${STRANGER}`);
  });
});

/** $XDG_CONFIG_HOME/ncclrun/config.json with settings that a project file must not have. */
function userSettings(owner: number, modes: readonly [config: number, ncclrun: number] = [0o755, 0o755]): string {
  const [first, second] = modes;
  for (const [path, mode] of [
    [join(home, 'config'), first],
    [join(home, 'config/ncclrun'), second],
  ] as const) {
    mkdirSync(path);
    chownSync(path, USER, USER);
    chmodSync(path, mode);
  }
  return file(join(home, 'config/ncclrun/config.json'), { rsh: './ssh', export: ['PLANTED=yes', 'PATH=/'] }, owner);
}

describeIf(cannotBecomeOthers, 'the user’s own settings file', () => {
  it("the launcher obeys every setting of the user's own file", async () => {
    userSettings(USER);
    await isObeyed();
  });

  it('the launcher ignores a user settings file of another user', async () => {
    const path = userSettings(STRANGER);
    await isIgnored(`ignored ${path}: it belongs to uid ${STRANGER}, not to you`);
  });

  it('the launcher ignores a user settings file below a directory that others may write to', async () => {
    userSettings(USER, [0o777, 0o755]);
    await isIgnored(`every user may write to the directory ${join(home, 'config')} (mode 0777)`);
  });

  it('the launcher does not look for settings below a relative directory', async () => {
    mkdirSync(join(project, 'config/ncclrun'), { recursive: true });
    mkdirSync(join(project, '.config/ncclrun'), { recursive: true });
    for (const directory of ['config', '.config']) file(join(project, directory, 'ncclrun/config.json'), planted, USER);
    for (const environment of [{ XDG_CONFIG_HOME: 'config' }, { XDG_CONFIG_HOME: '', HOME: '' }]) {
      const { status, stdout, stderr } = await run(program, project, USER, environment);
      expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: 'planted: no\n', stderr: '' });
    }
  });
});

describeIf(cannotBecomeOthers, 'a project’s settings', () => {
  it("the launcher takes an rsh program from the user's file but not from a project file", async () => {
    const proof = join(project, 'proof');
    const remote = file(join(project, 'ssh'), `#!/bin/sh\necho ran >${proof}\nexit 255\n`, USER, 0o755);
    const settings = { rsh: remote, host: 'node.invalid' };
    file(join(project, 'ncclrun.json'), settings, USER);
    const refused = await run(program);
    expect(refused.stderr).toContain(`ignored "rsh": "${remote}"`);
    expect(existsSync(proof)).toBe(false);
    mkdirSync(join(home, 'config/ncclrun'), { recursive: true });
    file(join(home, 'config/ncclrun/config.json'), settings, USER);
    await run(program);
    expect(existsSync(proof)).toBe(true);
  });

  it('a project file cannot write output through a link out of the project', async () => {
    const outside = ownedDirectory(`outside${count}`, USER);
    symlinkSync(outside, join(project, 'away'));
    symlinkSync(join(outside, 'none'), join(project, 'out.0'));
    const output = ['dir=away', 'file=out.%r', `dir=${outside}`, `dir=../outside${count}`, 'file=fine.%r'];
    file(join(project, 'ncclrun.json'), { output, report: 'away/report', events: 'away/events' }, USER);
    const { status, stdout, stderr } = await run(program);
    expect({ status, stdout }).toEqual({ status: 0, stdout: 'planted: no\n' });
    expect(stderr.match(/^ncclrun: ignored /gmu)).toHaveLength(6);
    expect(readdirSync(outside)).toEqual([]);
    expect(readFileSync(join(project, 'fine.0'), 'utf8')).toBe('planted: no\n');
  });

  it('a project file cannot name a hostfile that another user can change', async () => {
    const shared = ownedDirectory(`shared${count}`, 0, 0o1777);
    const hosts = file(join(shared, 'hosts'), 'strangers.invalid\n', STRANGER);
    file(join(project, 'ncclrun.json'), { hostfile: hosts }, USER);
    const { status, stdout, stderr } = await run(['--dry-run', '--json', '/bin/true']);
    expect(status).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ hosts: [{ name: 'localhost' }] });
    expect(stderr).toContain(`ignored "hostfile": "${hosts}"`);
  });
});

describeIf(cannotBecomeOthers, 'a command that starts no job', () => {
  it.each([['version'], ['ps'], ['completion', 'bash'], ['help', 'ps'], ['man']])(
    'the command does not open package.json of the working directory: %s',
    async (...argv) => {
      // A pipe that nobody writes to keeps waiting whoever opens it.
      execFileSync('mkfifo', ['-m', '666', join(project, 'package.json')]);
      const { status, stderr } = await run(argv);
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    },
  );
});
