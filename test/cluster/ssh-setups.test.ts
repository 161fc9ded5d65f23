/** Set-ups of ssh that public pages show: each works as with ssh itself, or its failure says what to write. */
import { existsSync } from 'node:fs';
import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster } from '../rig/cluster.ts';
import type { SshClientOptions } from '../rig/cluster/files.ts';
import { startSshd } from '../rig/cluster/sshd.ts';
import { Command } from '../rig/command.ts';
import { until } from '../rig/until.ts';

const TWO_FACTOR_PORT = 2301;
const RESTRICTED_PORT = 2302;
const OLD_CIPHER_PORT = 2303;
const SINGLE_PORT = 2304;

/** Lines of ssh_config before the rig's, for which no host key is asked. */
const lines = (...own: readonly string[]) => ({ extra: [...own, 'StrictHostKeyChecking no'].join('\n  ') });
const at = (port: number, ...own: readonly string[]) => lines(`Host h1\n  Port ${port}\nHost *`, ...own);

describeIf(clusterUnavailable(), 'a set-up of ssh', () => {
  let cluster: Cluster;
  let clients = 0;
  beforeAll(async () => {
    cluster = await Cluster.start(2);
    const twoFactors = ['PasswordAuthentication yes', 'AuthenticationMethods publickey,password'];
    await startSshd(cluster, 'h1', TWO_FACTOR_PORT, twoFactors);
    await startSshd(cluster, 'h1', RESTRICTED_PORT, ['ForceCommand rbash -c "$SSH_ORIGINAL_COMMAND"']);
    await startSshd(cluster, 'h1', OLD_CIPHER_PORT, ['Ciphers aes128-cbc']);
    await startSshd(cluster, 'h1', SINGLE_PORT, [
      'MaxSessions 1',
      'MaxStartups 1',
      'PermitTTY no',
      'Banner /etc/passwd',
    ]);
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  async function run(rsh: string, options: Partial<SshClientOptions>, more: NodeJS.ProcessEnv = {}, hosts = 'h1:1') {
    const client = await cluster.sshClient(`client-${++clients}`, { knownHosts: '/dev/null', ...options });
    const environment = { ...cluster.environment(client), SSH_AUTH_SOCK: undefined, ...more };
    const result = await Command.result(['--rsh', rsh, '-H', hosts, 'true'], { cluster, environment });
    return { ...result, text: result.outcome.stderr };
  }

  it.each(['auto', 'openssh'])('a configuration made for tunnels lets our command run (%s)', async (rsh) => {
    for (const setting of ['SessionType none', 'StdinNull yes', 'ForkAfterAuthentication yes'])
      expect(await run(rsh, lines(setting)), setting).toMatchObject({ ok: true });
  });

  it.each(['auto', 'openssh'])(
    'a host with one session, one connection, a banner and no terminal serves (%s)',
    async (rsh) => {
      expect(
        await run(rsh, at(SINGLE_PORT, 'RequestTTY force', 'RemoteCommand tmux', 'Compression yes')),
      ).toMatchObject({
        ok: true,
      });
    },
  );

  it('IdentityFile may name the public half of a key that the agent holds', async () => {
    const socket = join(cluster.state, 'setup-agent.sock');
    await using agent = Command.start(['-D', '-a', socket], { program: 'ssh-agent', cluster });
    await until('an agent', () => existsSync(socket));
    await cluster.inLogin('env', `SSH_AUTH_SOCK=${socket}`, 'ssh-add', '-q', join(cluster.state, 'id'));
    const identity = join(cluster.state, 'id.pub');
    await chmod(identity, 0o644);
    for (const rsh of ['ssh2', 'openssh'])
      expect(await run(rsh, { identity, ...lines() }, { SSH_AUTH_SOCK: socket }), rsh).toMatchObject({ ok: true });
    expect(agent.process.exitCode).toBeNull();
  });

  it.each(['auto', 'openssh'])(
    'a host that asks for a second factor is reached by a connection made by hand, as the failure says (%s)',
    async (rsh) => {
      const { failures, text } = await run(rsh, at(TWO_FACTOR_PORT));
      expect(failures[0]).toMatchObject({ cause: 'authentication' });
      expect(text).toMatch(/takes no key alone, and wants password.*ControlMaster/su);
      expect(text).not.toContain('ssh-copy-id');
      const control = join(cluster.state, `control-${rsh}`);
      const client = await cluster.sshClient(`master-${rsh}`, lines(`ControlPath ${control}`));
      await cluster.inLogin(join(client.bin, 'ssh'), '-f', '-N', '-M', 'h1');
      expect(await run(rsh, at(TWO_FACTOR_PORT, `ControlPath ${control}`))).toMatchObject({ ok: true });
      await cluster.inLogin(join(client.bin, 'ssh'), '-O', 'exit', 'h1');
    },
  );

  it.each(['auto', 'openssh'])('the failure names a restricted login shell (%s)', async (rsh) => {
    expect((await run(rsh, at(RESTRICTED_PORT))).text).toContain('the login shell there is restricted');
  });

  it.each(['auto', 'openssh'])(
    'the failure has the setting that accepts an algorithm of the host (%s)',
    async (rsh) => {
      const { failures, text } = await run(rsh, at(OLD_CIPHER_PORT));
      expect(failures[0]).toMatchObject({ cause: 'other' });
      expect(text).toContain('Host h1, Ciphers +aes128-cbc');
      const { failures: unlike, text: about } = await run(rsh, lines('HostKeyAlgorithms rsa-sha2-512'));
      expect(unlike[0]).toMatchObject({ cause: 'other' });
      expect(about).toContain('Host h1, HostKeyAlgorithms +ssh-ed25519');
    },
  );

  it('jump hosts that lead in a circle are refused at once', async () => {
    const { text, outcome } = await run('auto', lines('ProxyJump h2'));
    expect(text).toContain('the jump hosts of h1 lead in a circle: h1, h2, h2');
    expect(outcome.milliseconds).toBeLessThan(4000); // ConnectTimeout is 5 s
  });

  it('the failure names an unknown jump host', async () => {
    const { text } = await run('auto', lines('Host h1\n  ProxyJump bastion\nHost *'));
    expect(text).toContain('bastion, on the way there: could not resolve hostname bastion');
    expect(text).toContain('check ProxyJump');
  });

  it.each(['auto', 'openssh'])('the failure says that no key is offered (%s)', async (rsh) => {
    const { text } = await run(rsh, lines('PubkeyAuthentication no'));
    if (rsh === 'auto') expect(text).toContain('PubkeyAuthentication is off for h1');
    expect(text).toContain('Permission denied');
  });
});
