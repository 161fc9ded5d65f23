/** No Node of ours opens a debugger: not for SIGUSR1, whenever it comes, and not for what the environment asks Node to do. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { installedIdentity } from '../../launcher/remote/staging/identity.ts';
import { remoteCommand } from '../../launcher/remote/staging/remote-script.ts';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { compileWithEngine } from '../rig/compile.ts';
import { killHard } from '../rig/faults.ts';
import { hammerSigusr1, loopbackListeners, outlivesSigusr1, LAST_SIGNALS } from '../rig/inspector.ts';
import { environmentOf, processEntry } from '../rig/processes.ts';
import { until } from '../rig/until.ts';

const STARTS = [1, 2, 3, 4, 5, 6];
let directory = '';
let plain = '';
/** An installation without a Node of its own: the PATH's runs it. */
let nodeless = '';
beforeAll(async () => {
  directory = await mkdtemp(join(repository, 'build/test-inspector-'));
  plain = await compileWithEngine('test/rig/programs/plain.c', directory);
  nodeless = join(directory, 'nodeless');
  await mkdir(nodeless);
  await cp(join(repository, 'bin'), join(nodeless, 'bin'), { recursive: true });
  for (const name of ['dist', 'build', 'package.json']) await symlink(join(repository, name), join(nodeless, name));
});
afterAll(() => rm(directory, { recursive: true }));

/** Once its shell ignores the signal. */
const ready = (pid: number): Promise<boolean> => until('SIGUSR1 is ignored', () => outlivesSigusr1(pid));

/** Starts of a launcher that had signals before its native code was there. */
let earlyStarts = 0;

async function launcherStands(root: string): Promise<void> {
  const program = join(root, 'bin/ncclrun');
  await using command = Command.start(['-n', '1', '--forward-signals', 'none', 'sleep', '60'], { program });
  await ready(command.pid);
  const { listeners, sent } = await hammerSigusr1(command.pid);
  expect(listeners).toEqual([]);
  if (sent > LAST_SIGNALS) earlyStarts += 1;
  command.signal('SIGTERM');
  expect((await command.outcome).status).toBe(143);
}

async function remoteAgentStands(root: string): Promise<void> {
  const identity = installedIdentity();
  if (identity === null) throw new Error('npm run build');
  const line = remoteCommand({ root, identity, orderBytes: 0, anew: false });
  const agent = spawn('sh', ['-c', line], { stdio: ['pipe', 'ignore', 'ignore'] });
  const { pid = 0 } = agent;
  const exited = once(agent, 'exit');
  await ready(pid);
  expect((await hammerSigusr1(pid)).listeners).toEqual([]);
  expect(processEntry(pid)?.argv.at(-1)).toMatch(/agent\.cjs$/);
  agent.stdin?.end();
  expect(await exited).toEqual([expect.any(Number), null]);
}

async function privateAgentStands(environment: NodeJS.ProcessEnv): Promise<void> {
  const ids = await mkdtemp(join(directory, 'ids-'));
  const script = 'for r in 0 1; do RANK=$r WORLD_SIZE=2 "$0" hold "$1" & done; wait';
  const command = Command.start(['-c', script, plain, ids], { program: 'sh', environment });
  const agent = await until(
    'there is a private agent',
    () => command.survivors().find(({ argv }) => argv.at(-1) === 'private')?.pid ?? null,
  );
  expect((await hammerSigusr1(agent)).listeners).toEqual([]);
  expect(processEntry(agent)?.argv.at(-1)).toBe('private');
  expect(environmentOf(agent, 'NODE_OPTIONS')).toBe(null);
  for (const { pid } of command.survivors()) killHard(pid);
  await command.outcome;
}

describe.each([
  ['the Node that npm installed', () => repository, () => ({})],
  ["the PATH's node", () => nodeless, () => ({ NCCLRUN_NODE: process.execPath })],
])('SIGUSR1 during a start, with %s', (_, root, environment) => {
  it.each(STARTS)('the launcher ignores SIGUSR1 and opens no debugger (start %i)', () => launcherStands(root()));
  it('signals came to launchers that had not loaded their native code yet', () => {
    expect(earlyStarts).toBeGreaterThan(0);
    earlyStarts = 0;
  });
  it.each(STARTS)('an agent of a remote shell ignores SIGUSR1 and opens no debugger (start %i)', () =>
    remoteAgentStands(root()),
  );
  it.each(STARTS)('a private agent ignores SIGUSR1 and opens no debugger (start %i)', () =>
    privateAgentStands(environment()),
  );
});

const asked = (): Record<string, string> => ({
  NODE_OPTIONS: `--inspect=127.0.0.1:0 --require=${join(directory, 'probe.cjs')}`,
  NODE_PATH: '/nowhere/modules',
  NODE_COMPILE_CACHE: join(directory, 'compiled'),
  OPENSSL_CONF: '/nowhere/openssl conf',
  OPENSSL_MODULES: '/nowhere/openssl',
  OPENSSL_ENGINES: '',
});
const loaded = (): string => join(directory, 'loaded');
/** As `env` prints it. */
const printed = (): string[] => Object.entries(asked()).map(([name, value]) => `${name}=${value}`);
const ofNode = (stdout: string): string[] =>
  stdout.split('\n').filter((line) => /NCCLRUN_HELD|^NODE_(OPTIONS|PATH|COMPILE)|^OPENSSL/.test(line));

const nothingLoaded = (): void => expect([loaded(), join(directory, 'compiled')].filter(existsSync)).toEqual([]);

describe('environment variables that configure Node', () => {
  beforeAll(() =>
    writeFile(join(directory, 'probe.cjs'), `require('node:fs').writeFileSync(${JSON.stringify(loaded())}, '')`),
  );

  it('the launcher passes them to the ranks unchanged and does not obey them', async () => {
    const options = ['-n', '1', '--tag-output=none', 'env'];
    const { status, stdout, stderr } = await Command.run(options, { environment: asked() });
    expect({ status, stderr, printed: ofNode(stdout).toSorted() }).toEqual({
      status: 0,
      stderr: '',
      printed: printed().toSorted(),
    });
    nothingLoaded();
  });

  it('an agent passes them to its ranks unchanged and does not obey them', async () => {
    const shell = join(directory, 'shell');
    const exports = printed().map((assignment) => `export '${assignment}'`);
    await writeFile(shell, `#!/bin/sh\n${exports.join('\n')}\nshift\nexec sh -c "$*"\n`, { mode: 0o755 });
    const options = ['--rsh', shell, '-H', 'pod7:1', '--tag-output=none', 'env'];
    const { status, stdout, stderr } = await Command.run(options);
    expect({ status, stderr, printed: ofNode(stdout).toSorted() }).toEqual({
      status: 0,
      stderr: '',
      printed: printed().toSorted(),
    });
    nothingLoaded();
  });

  it('a private agent does not obey them', async () => {
    await privateAgentStands(asked());
    nothingLoaded();
  });

  it('no process of a running job listens for a debugger', async () => {
    await using command = Command.start(['-n', '1', 'sh', '-c', 'echo runs; sleep 60'], { environment: asked() });
    await command.line('stdout', /runs/);
    expect([command.pid, ...command.survivors().map(({ pid }) => pid)].flatMap(loopbackListeners)).toEqual([]);
    command.signal('SIGTERM');
    await command.outcome;
    nothingLoaded();
  });
});
