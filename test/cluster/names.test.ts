/** Names of hosts: slow name servers, and names with several addresses. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, LOGIN_ADDRESS, repository } from '../rig/cluster.ts';
import { Command, type Outcome } from '../rig/command.ts';

const HOSTS = 12;
/** Each look-up. In turns, even by fours, twelve would take longer than ConnectTimeout. */
const SLOW_MS = 2000;
/** Less than 32 look-ups take one after the other. */
const SHORT_SECONDS = 3;
/** Far more than a connection takes here, also where the machine is busy. */
const LONG_SECONDS = 60;

describeIf(clusterUnavailable(), 'names of hosts', () => {
  let cluster: Cluster;
  let names: ChildProcess;
  beforeAll(async () => {
    cluster = await Cluster.start(HOSTS);
    const server = [process.execPath, join(repository, 'test/rig/slow-names.ts'), LOGIN_ADDRESS, String(SLOW_MS)];
    const [file, argv] = cluster.command(server);
    names = spawn(file, argv, { stdio: ['ignore', 'pipe', 'inherit'] });
    if (names.stdout !== null) await once(names.stdout, 'data');
    await writeFile(join(cluster.state, 'resolv.conf'), `nameserver ${LOGIN_ADDRESS}\noptions timeout:10\n`);
    await writeFile(join(cluster.state, 'by-server'), 'passwd: files\nhosts: files dns\n');
    await writeFile(join(cluster.state, 'two'), '127.0.0.1 localhost\n10.77.0.12 both\n10.77.0.11 both\n');
    await writeFile(join(cluster.state, 'multi'), 'multi on\n');
  });
  afterAll(async () => {
    names.kill('SIGKILL');
    await cluster[Symbol.asyncDispose]();
  });

  /** With these files of the state directory in place of the system's. */
  async function run(
    files: Readonly<Record<string, string>>,
    connectSeconds: number,
    argv: readonly string[],
  ): Promise<Outcome> {
    const extra = `StrictHostKeyChecking no\n  ConnectTimeout ${connectSeconds}`;
    const ssh = await cluster.sshClient('unknown', { knownHosts: '/dev/null', extra });
    const mounts = Object.entries(files).map(([path, name]) => `mount --bind ${cluster.state}/${name} ${path}`);
    const script = ['mount --make-rprivate /', ...mounts, 'exec "$@"'].join(' && ');
    const words = ['-m', 'sh', '-c', script, 'sh', join(repository, 'bin/ncclrun'), ...argv];
    return Command.run(words, { cluster, program: 'unshare', environment: cluster.environment(ssh) });
  }

  it.each(['ssh2', 'openssh'])(
    'names that take long to look up are looked up at once, and not within ConnectTimeout (%s)',
    async (shell) => {
      const hosts = Array.from({ length: HOSTS }, (_, index) => `slow-${index + 1}:1`).join(',');
      const files = { '/etc/resolv.conf': 'resolv.conf', '/etc/nsswitch.conf': 'by-server' };
      const { status, stderr } = await run(files, SHORT_SECONDS, ['--rsh', shell, '-H', hosts, 'true']);
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    },
  );

  it.each(['ssh2', 'openssh'])('an address that swallows packets leaves the next one its time (%s)', async (shell) => {
    await cluster.host('h2').drop();
    try {
      const files = { '/etc/hosts': 'two', '/etc/host.conf': 'multi' };
      const started = performance.now();
      const { status, stdout, stderr } = await run(files, LONG_SECONDS, ['--rsh', shell, '-H', 'both:1', 'hostname']);
      expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: 'h1\n', stderr: '' });
      expect(performance.now() - started).toBeLessThan(LONG_SECONDS * 1000);
    } finally {
      await cluster.host('h2').accept();
    }
  });
});
