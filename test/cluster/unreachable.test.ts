/** Hosts that cannot be reached or cannot serve: each by name, with the phase and a sentence, and nothing left on the others. */
import { existsSync } from 'node:fs';
import { chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { JobResult } from '../../launcher/model/types.ts';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, repository } from '../rig/cluster.ts';
import type { SshClient } from '../rig/cluster/files.ts';
import { startSshd } from '../rig/cluster/sshd.ts';
import { Command } from '../rig/command.ts';
import { parseResult } from '../rig/result.ts';
import { until } from '../rig/until.ts';

describeIf(clusterUnavailable(), 'a host that cannot be used', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.start(2);
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  async function failing(hosts: string, ssh: SshClient = cluster.ssh): Promise<JobResult & { text: string }> {
    const environment = { ...cluster.environment(ssh), NCCLRUN_STAGE: 'never' };
    const result = await Command.result(['-H', hosts, '/bin/true'], { cluster, environment });
    expect(result.outcome.status).toBe(125);
    expect(result.outcome.stderr).not.toMatch(/^\s+at .*:\d+:\d+/m);
    for (const host of cluster.hosts) await host.empty();
    return { ...result, text: result.outcome.stderr };
  }

  it('the failure of an unknown host name has the cause unknown-host', async () => {
    const { failures, text } = await failing('h1:1,nowhere:1');
    expect(failures[0]).toMatchObject({
      type: 'host-unreachable',
      host: 'nowhere',
      phase: 'connect',
      cause: 'unknown-host',
    });
    expect(text).toContain('nowhere');
  });

  it('the failure of a host without a route has the cause no-route', async () => {
    const { failures } = await failing('h1:1,10.99.0.1:1');
    expect(failures[0]).toMatchObject({ host: '10.99.0.1', cause: 'no-route' });
  });

  it('the failure of a host that refuses connections has the cause refused', async () => {
    await cluster.host('h2').reset();
    try {
      const { failures } = await failing('h1:1,h2:1');
      expect(failures[0]).toMatchObject({ host: 'h2', phase: 'connect', cause: 'refused' });
    } finally {
      await cluster.host('h2').accept();
    }
  });

  it.each(['ssh2', 'openssh'])('the launcher reports a host that hangs (%s)', async (shell) => {
    await cluster.host('h2').freeze();
    try {
      const { status, stdout } = await Command.run(['--json', '--rsh', shell, '-H', 'h1:1,h2:1', '/bin/true'], {
        cluster,
      });
      expect(status).toBe(125);
      const [failure] = parseResult(stdout).failures;
      expect(failure).toMatchObject({ type: 'host-unreachable', host: 'h2', cause: 'timeout' });
      await cluster.host('h1').empty();
    } finally {
      await cluster.host('h2').thaw();
    }
    await cluster.host('h2').empty();
  });

  /** h2 by an sshd whose logins run `command` before they end, and the environment of a launcher that uses it. */
  async function slowLogin(port: number, command: string): Promise<NodeJS.ProcessEnv> {
    const keys = `AuthorizedKeysCommand /bin/sh -c "${command}; cat ${cluster.state}/authorized_keys"`;
    await startSshd(cluster, 'h2', port, [keys, 'AuthorizedKeysCommandUser root', 'AuthorizedKeysFile none']);
    const extra = `Host h2\n  Port ${port}\n  HostKeyAlias h2\nHost *`;
    return cluster.environment(await cluster.sshClient(`slow-${port}`, { extra }));
  }

  it('the launcher waits for a host whose login takes 9 s', async () => {
    const environment = await slowLogin(2222, `mkdir ${cluster.state}/slept && sleep 9`);
    const { status, stdout } = await Command.run(['-H', 'h1:1,h2:1', 'hostname'], { cluster, environment });
    expect({ status, lines: stdout.split('\n').toSorted() }).toEqual({ status: 0, lines: ['', '[0] h1', '[1] h2'] });
  });

  it.each([
    ['is disconnected', 'cut', 'uncut'],
    ['hangs', 'freeze', 'thaw'],
  ] as const)('the launcher reports within 10 s a host that %s during a slow login', async (_, begin, end) => {
    const [begun, goOn] = [join(cluster.state, `begun-${begin}`), join(cluster.state, `go-on-${begin}`)];
    const port = begin === 'cut' ? 2223 : 2224;
    const environment = await slowLogin(port, `mkfifo ${goOn} && touch ${begun} && cat ${goOn}`);
    await using command = Command.start(['--json', '-H', 'h1:1,h2:1', 'hostname'], { cluster, environment });
    await until('a login at h2', () => existsSync(begun));
    await cluster.host('h2')[begin]();
    try {
      const { status, stdout } = await command.endedWithin(10_000);
      expect(status).toBe(125);
      const [failure] = parseResult(stdout).failures;
      expect(failure).toMatchObject({ type: 'host-unreachable', host: 'h2', phase: 'connect', cause: 'timeout' });
      expect(failure).toHaveProperty('detail', expect.stringMatching(/is connected, but does not answer/));
    } finally {
      await cluster.host('h2')[end]();
      await writeFile(goOn, '');
    }
    await cluster.host('h2').empty();
  });

  it('the launcher sends no probes after the login, not even during a key exchange', async () => {
    await startSshd(cluster, 'h2', 2225, ['RekeyLimit 1M']);
    const extra = 'Host h2\n  Port 2225\n  HostKeyAlias h2';
    const environment = cluster.environment(await cluster.sshClient('rekeys', { extra }));
    // Longer than the pause between two questions whether it is still there.
    const script = 'head -c 4000000 /dev/zero | tr "\\0" a | fold -w 1000; sleep 3';
    const words = ['--rsh', 'ssh2', '-H', 'h2:1', 'sh', '-c', script];
    const { status } = await Command.run(words, { cluster, environment });
    expect(status).toBe(0);
    const log = await readFile(join(cluster.state, 'h2/sshd-2225/log'), 'utf8');
    expect(log.match(/^.*(preauth|exchange|Connection (closed|reset)).*$/gm) ?? []).toEqual([]);
  });

  it("the failure of a host that rejects the user's key has the cause authentication", async () => {
    const identity = join(cluster.state, 'stranger');
    await cluster.inLogin('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', identity);
    const { failures, text } = await failing('h2:1', await cluster.sshClient('stranger-bin', { identity }));
    expect(failures[0]).toMatchObject({ host: 'h2', phase: 'connect', cause: 'authentication' });
    expect(text).toMatch(/Permission denied/);
  });

  it('the failure of a host with an unknown host key has the cause host-key', async () => {
    const knownHosts = join(cluster.state, 'knows-none');
    await writeFile(knownHosts, '');
    const { failures } = await failing('h1:1', await cluster.sshClient('knows-none-bin', { knownHosts }));
    expect(failures[0]).toMatchObject({ host: 'h1', cause: 'host-key' });
  });

  it('the failure of a host whose host key changed has the cause host-key', async () => {
    const knownHosts = join(cluster.state, 'knows-other');
    const other = await cluster.inLogin('cat', join(cluster.state, 'h2/hostkey.pub'));
    await writeFile(knownHosts, `h1,10.77.0.11 ${other.split(' ').slice(0, 2).join(' ')}\n`);
    const { failures, text } = await failing('h1:1', await cluster.sshClient('knows-other-bin', { knownHosts }));
    expect(failures[0]).toMatchObject({ host: 'h1', cause: 'host-key' });
    expect(text).toMatch(/h1/);
  });

  it('the launcher names a host on which ncclrun is missing and may not be staged', async () => {
    const empty = join(cluster.state, 'empty');
    await mkdir(empty);
    const { init } = cluster.host('h2');
    await cluster.host('h2').exec('mount', '--bind', empty, repository);
    try {
      const { failures, text } = await failing('h1:1,h2:1');
      expect(failures[0]).toMatchObject({ host: 'h2' });
      expect(text).toMatch(/h2/);
      expect(text).toContain(repository);
    } finally {
      expect(cluster.host('h2').init).toBe(init);
      await cluster.host('h2').exec('umount', repository);
    }
  });

  it('the launcher exits with 127 when the program is missing on a host', async () => {
    const directory = join(cluster.state, 'programs');
    await mkdir(directory);
    await writeFile(join(directory, 'program'), '#!/bin/sh\nexit 0\n');
    await chmod(join(directory, 'program'), 0o755);
    await mkdir(join(cluster.state, 'none'));
    await cluster.host('h2').exec('mount', '--bind', join(cluster.state, 'none'), directory);
    const result = await Command.result(['-H', 'h1:1,h2:1', join(directory, 'program')], { cluster });
    expect(result.outcome.status).toBe(127);
    expect(result.failures[0]).toMatchObject({ type: 'spawn', host: 'h2', rank: 1, cause: 'not-found' });
    for (const host of cluster.hosts) await host.empty();
    await cluster.host('h2').exec('umount', directory);
    await rm(directory, { recursive: true });
  });

  it('six simultaneous jobs start on a host that accepts connections slowly', async () => {
    const jobs = Array.from({ length: 6 }, () => Command.run(['-H', 'h1:1,h2:1', '/bin/true'], { cluster }));
    expect((await Promise.all(jobs)).map((outcome) => outcome.status)).toEqual(jobs.map(() => 0));
  });
});
