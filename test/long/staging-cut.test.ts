/** A copy of ncclrun that is cut short, on a host that nobody can tell of it: no process and no file of it stays. */
import { readdirSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, type ClusterHost, repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { type ProcessEntry, signalFound } from '../rig/processes.ts';
import { parseResult } from '../rig/result.ts';
import { until } from '../rig/until.ts';

/** The launcher keeps its archives there: made once for all tests. */
const environment = { XDG_CACHE_HOME: join(repository, 'build/test-cache') };
/** A lease, and what a busy machine may add. */
const CLEAN_MS = 30_000;

async function named(command: Command): Promise<void> {
  const { status, stdout } = await command.endedWithin(CLEAN_MS);
  expect(status).toBe(125);
  expect(parseResult(stdout).failures[0]).toMatchObject({ host: 'h1', phase: 'hello' });
}

describeIf(clusterUnavailable(), 'a copy of ncclrun that is interrupted', () => {
  let cluster: Cluster;
  let host: ClusterHost;
  let cache: string;
  beforeAll(async () => {
    cluster = await Cluster.start(1);
    host = cluster.host('h1');
    await host.hideInstallation();
    cache = join(cluster.state, 'cache');
    await mkdir(cache);
    await host.useCache(cache);
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  const files = (): string[] => {
    try {
      return readdirSync(join(cache, 'ncclrun'), { recursive: true, encoding: 'utf8' });
    } catch {
      return [];
    }
  };
  const reader = (): ProcessEntry | null =>
    host.guests().find(({ argv: [name = ''] }) => /\/unpack$|^tar$|\/tar$/.test(name)) ?? null;
  const shell = (): ProcessEntry | null =>
    host.guests().find(({ argv, parent }) => argv[0] === 'sh' && argv.includes('ncclrun') && isSshd(parent)) ?? null;
  const isSshd = (pid: number): boolean =>
    (host.processes().find((entry) => entry.pid === pid)?.argv[0] ?? '').includes('sshd');

  /** A job whose copy is on its way, slowly, at a few megabytes. */
  async function copying(body: (command: Command) => Promise<void>, rsh = 'ssh2'): Promise<void> {
    await host.rate('20mbit');
    try {
      await using command = Command.start(['--json', '--rsh', rsh, '-H', 'h1:1', 'hostname'], { cluster, environment });
      await until(
        'a file is being unpacked',
        () => reader() !== null && files().some((name) => name.endsWith('/node')),
        180_000,
      );
      await body(command);
      await host.empty(CLEAN_MS);
      expect(files()).toEqual([]);
    } finally {
      await host.uncut();
      await host.unrate();
    }
  }

  /** Without a program of ours that unpacks. */
  async function byTools(body: () => Promise<void>): Promise<void> {
    const chmod = (await host.exec('sh', '-c', 'readlink -f "$(command -v chmod)"')).trim();
    await host.exec('mount', '--bind', '/bin/true', chmod);
    try {
      await body();
    } finally {
      await host.exec('umount', chmod);
    }
  }

  it.each(['ssh2', 'openssh'])('a cut cable leaves no process and no file on the host (%s)', (rsh) =>
    copying(async (command) => {
      await host.cut();
      await named(command);
    }, rsh),
  );

  /** The first time an archive is made for them, which takes long on a busy machine. */
  const ARCHIVE_MS = 300_000;
  it(
    'a cut cable leaves nothing on a host that unpacks with its own tools',
    () =>
      byTools(() =>
        copying(async (command) => {
          await host.cut();
          await named(command);
        }),
      ),
    ARCHIVE_MS,
  );

  it('a cut cable leaves nothing when the launcher is killed at the same time', () =>
    copying(async (command) => {
      await host.cut();
      command.process.kill('SIGKILL');
      await command.outcome;
    }));

  it("kill -9 of the host's shell leaves nothing behind", () =>
    copying(async (command) => {
      const { pid } = await until('the shell', shell);
      process.kill(pid, 'SIGKILL');
      await named(command);
    }));

  it('kill -9 of the unpacking process leaves nothing behind', () =>
    copying(async (command) => {
      signalFound(reader(), 'SIGKILL');
      await named(command);
    }));

  it('a stopped unpacking process leaves nothing behind', () =>
    copying(async (command) => {
      signalFound(reader(), 'SIGSTOP');
      await named(command);
    }));

  it('a stopped shell on the host leaves nothing behind', () =>
    copying(async (command) => {
      const { pid } = await until('the shell', shell);
      process.kill(pid, 'SIGSTOP');
      signalFound(reader(), 'SIGSTOP');
      await named(command);
    }));

  it('a copy over a slow link with long delays completes', async () => {
    await host.rate('16mbit');
    await host.delay(100, 10);
    try {
      const { status, stdout } = await Command.run(['-H', 'h1:1', '--tag-output=none', 'hostname'], {
        cluster,
        environment,
      });
      expect({ status, stdout }).toEqual({ status: 0, stdout: 'h1\n' });
    } finally {
      await host.undelay();
      await host.unrate();
    }
  });
});
