/** Host keys, certificates, jump hosts and ports, each accepted once and refused once, by our own ssh and by the system's. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JobResult } from '../../launcher/model/types.ts';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster } from '../rig/cluster.ts';
import type { SshClientOptions } from '../rig/cluster/files.ts';
import { certify, copyHostKey, makeKeyPair, publicKey, startSshd } from '../rig/cluster/sshd.ts';
import { Command } from '../rig/command.ts';
import { sample } from '../rig/whole.ts';

const OTHER_PORT = 2222;
const CERTIFIED_PORT = 2223;
const USER_CERTIFICATE_PORT = 2224;
/** The rig's configuration names every host by its address. */
const address = { h1: '10.77.0.11', h2: '10.77.0.12', h3: '10.77.0.13' } as const;

type Attempt = JobResult & { readonly text: string };

function refused(result: Attempt, host = 'h1') {
  expect(result.failures[0]).toMatchObject({ type: 'host-unreachable', host, phase: 'connect', cause: 'host-key' });
  expect(result.exitCode).toBe(125);
  return result.text;
}

/** Lines of ssh_config that go before the rig's. */
const at = (port: number) => `Host h1\n  Port ${port}\nHost *`;

describeIf(clusterUnavailable(), 'authentication of a host', () => {
  let cluster: Cluster;
  let clients = 0;
  const key = { h1: '', h2: '', h3: '' };
  beforeAll(async () => {
    cluster = await Cluster.start(3);
    key.h1 = await publicKey(join(cluster.state, 'h1/hostkey'));
    key.h2 = await publicKey(join(cluster.state, 'h2/hostkey'));
    key.h3 = await publicKey(join(cluster.state, 'h3/hostkey'));
    await startSshd(cluster, 'h1', OTHER_PORT);
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  /** `hosts`: as in -H. */
  async function attempt(rsh: string, hosts: string, options: Partial<SshClientOptions>): Promise<Attempt> {
    const client = await cluster.sshClient(`client-${++clients}`, options);
    const environment = cluster.environment(client);
    const result = await Command.result(['--rsh', rsh, '-v', '-H', hosts, '/bin/true'], { cluster, environment });
    return { ...result, text: result.outcome.stderr };
  }
  async function known(...lines: readonly string[]): Promise<{ knownHosts: string }> {
    const knownHosts = join(cluster.state, `known-${++clients}`);
    await writeFile(knownHosts, `${lines.join('\n')}\n`);
    return { knownHosts };
  }
  async function trust(authority: string): Promise<Partial<SshClientOptions>> {
    const line = `@cert-authority [${address.h1}]:${CERTIFIED_PORT} ${await publicKey(authority)}`;
    return { ...(await known(line)), extra: at(CERTIFIED_PORT) };
  }
  async function hashed(...lines: readonly string[]): Promise<{ knownHosts: string }> {
    const file = await known(...lines);
    await cluster.inLogin('ssh-keygen', '-q', '-H', '-f', file.knownHosts);
    expect(await readFile(file.knownHosts, 'utf8')).toMatch(/^\|1\|/);
    return file;
  }
  describe.each(sample(['ssh2', 'openssh'], 2))('%s', (rsh) => {
    it('a hashed known_hosts name matches only its own host and key', async () => {
      expect(await attempt(rsh, 'h1:1', await hashed(`${address.h1} ${key.h1}`))).toMatchObject({ ok: true });
      refused(await attempt(rsh, 'h1:1', await hashed(`${address.h1} ${key.h2}`)));
      refused(await attempt(rsh, 'h1:1', await hashed(`${address.h2} ${key.h1}`)));
    });

    it('a changed host key is refused, and the message contains the repair command', async () => {
      const file = await known('# a comment', `${address.h1} ${key.h2}`);
      const text = refused(await attempt(rsh, 'h1:1', file));
      if (rsh === 'ssh2') {
        expect(text).toContain(`${file.knownHosts}:2`);
        expect(text).toMatch(/SHA256:[A-Za-z0-9+/]{43}/);
        const mend = /ssh-keygen -R \S+ -f \S+/.exec(text)?.[0] ?? '';
        await cluster.inLogin(...mend.split(' '));
        expect(refused(await attempt(rsh, 'h1:1', file))).toMatch(/no key of 10.77.0.11 is known/);
      }
      expect(text).toContain('ssh-keygen -R');
      await writeFile(file.knownHosts, `${address.h1} ${key.h1}\n`);
      expect(await attempt(rsh, 'h1:1', file)).toMatchObject({ ok: true });
    });

    it('a revoked host key is refused although it is also known', async () => {
      const line = `${address.h1} ${key.h1}`;
      expect(refused(await attempt(rsh, 'h1:1', await known(line, `@revoked * ${key.h1}`)))).toMatch(/revoked/i);
      expect(await attempt(rsh, 'h1:1', await known(line, `@revoked * ${key.h2}`))).toMatchObject({ ok: true });
    });

    it('known_hosts wildcards and negations apply', async () => {
      expect(await attempt(rsh, 'h1:1', await known(`10.77.0.1?,!10.77.0.12 ${key.h1}`))).toMatchObject({ ok: true });
      refused(await attempt(rsh, 'h1:1', await known(`10.77.*,!10.77.0.11 ${key.h1}`)));
    });

    it('a host key is looked up with the port', async () => {
      const extra = `Host h1\n  Port ${OTHER_PORT}\nHost *`;
      const other = { ...(await known(`[${address.h1}]:${OTHER_PORT} ${key.h1}`)), extra };
      expect(await attempt(rsh, 'h1:1', other)).toMatchObject({ ok: true });
      refused(await attempt(rsh, 'h1:1', { ...other, ...(await known(`[${address.h1}]:${OTHER_PORT} ${key.h2}`)) }));
      refused(await attempt(rsh, 'h1:1', { ...other, ...(await known(`[${address.h1}]:2299 ${key.h1}`)) }));
      // ssh takes the key of the host's usual port for it, too.
      expect(await attempt(rsh, 'h1:1', { ...other, ...(await known(`${address.h1} ${key.h1}`)) })).toMatchObject({
        ok: true,
      });
    });

    it('a host key is looked up by HostKeyAlias', async () => {
      const extra = 'Host h1\n  HostKeyAlias first\nHost *';
      expect(await attempt(rsh, 'h1:1', { ...(await known(`first ${key.h1}`)), extra })).toMatchObject({ ok: true });
      refused(await attempt(rsh, 'h1:1', { ...(await known(`${address.h1} ${key.h1}`)), extra }));
    });

    it('a jump host is used only if both host keys are known', async () => {
      const extra = 'Host h2\n  ProxyJump h1\nHost *';
      const both = [`${address.h1} ${key.h1}`, `${address.h2} ${key.h2}`];
      expect(await attempt(rsh, 'h2:1', { ...(await known(...both)), extra })).toMatchObject({ ok: true });
      refused(await attempt(rsh, 'h2:1', { ...(await known(both[0] ?? '')), extra }), 'h2');
      refused(await attempt(rsh, 'h2:1', { ...(await known(both[1] ?? '')), extra }), 'h2');
    });

    it('a chain of jump hosts is used only if all host keys are known', async () => {
      const extra = 'Host h3\n  ProxyJump h1,h2\nHost *';
      const all = [`${address.h1} ${key.h1}`, `${address.h2} ${key.h2}`, `${address.h3} ${key.h3}`];
      expect(await attempt(rsh, 'h3:1', { ...(await known(...all)), extra })).toMatchObject({ ok: true });
      for (const unknown of [0, 1, 2]) {
        const others = await known(...all.filter((_, index) => index !== unknown));
        refused(await attempt(rsh, 'h3:1', { ...others, extra }), 'h3');
      }
    });

    it('StrictHostKeyChecking accept-new adds a new key and refuses a changed one', async () => {
      const file = await known('# nobody');
      const extra = 'StrictHostKeyChecking accept-new\n  HashKnownHosts yes';
      expect(await attempt(rsh, 'h1:1', { ...file, extra })).toMatchObject({ ok: true });
      expect(await readFile(file.knownHosts, 'utf8')).toMatch(/^\|1\|/m);
      expect(await attempt(rsh, 'h1:1', file)).toMatchObject({ ok: true });
      refused(await attempt(rsh, 'h1:1', { ...(await known(`${address.h1} ${key.h2}`)), extra }));
    });
  });

  describe('certificates', () => {
    let authority = '';
    let stranger = '';
    beforeAll(async () => {
      [authority, stranger] = [join(cluster.state, 'authority'), join(cluster.state, 'stranger')];
      await Promise.all([makeKeyPair(authority), makeKeyPair(stranger)]);
      const hostKey = join(cluster.state, 'certified-key');
      await copyHostKey(cluster, 'h1', hostKey);
      await certify(authority, hostKey, 'host', ['h1', address.h1]);
      await startSshd(cluster, 'h1', CERTIFIED_PORT, [`HostKey ${hostKey}`, `HostCertificate ${hostKey}-cert.pub`]);
      const none = join(cluster.state, 'none-authorized');
      await writeFile(none, '');
      const rules = [`TrustedUserCAKeys ${authority}.pub`, `AuthorizedKeysFile ${none}`];
      await startSshd(cluster, 'h1', USER_CERTIFICATE_PORT, rules);
    });

    it('OpenSSH accepts a host certificate, auto falls back to OpenSSH, and ssh2 refuses it', async () => {
      expect(await attempt('openssh', 'h1:1', await trust(authority))).toMatchObject({ ok: true });
      refused(await attempt('openssh', 'h1:1', await trust(stranger)));
      const auto = await attempt('auto', 'h1:1', await trust(authority));
      expect(auto).toMatchObject({ ok: true });
      expect(auto.text).toMatch(
        /h1: the system's ssh is used, since the key of h1 is known by a certificate authority/,
      );
      expect(refused(await attempt('ssh2', 'h1:1', await trust(authority)))).toMatch(/--rsh openssh/);
      const plain = { ...(await known(`[${address.h1}]:${CERTIFIED_PORT} ${key.h1}`)), extra: at(CERTIFIED_PORT) };
      expect(await attempt('ssh2', 'h1:1', plain)).toMatchObject({ ok: true });
    });

    it('OpenSSH accepts a user certificate, auto falls back to OpenSSH, and ssh2 refuses it', async () => {
      const identity = join(cluster.state, 'certified-user');
      await makeKeyPair(identity);
      await certify(authority, identity, 'user', ['root', process.env['USER'] ?? 'root']);
      const options = { identity, ...(await known(`* ${key.h1}`)), extra: at(USER_CERTIFICATE_PORT) };
      expect(await attempt('openssh', 'h1:1', options)).toMatchObject({ ok: true });
      const auto = await attempt('auto', 'h1:1', options);
      expect(auto).toMatchObject({ ok: true });
      expect(auto.text).toMatch(/there is a certificate, .*certified-user-cert.pub/);
      expect((await attempt('ssh2', 'h1:1', options)).failures[0]).toMatchObject({
        host: 'h1',
        cause: 'authentication',
      });
      const uncertified = join(cluster.state, 'uncertified-user');
      await makeKeyPair(uncertified);
      await certify(stranger, uncertified, 'user', ['root']);
      for (const rsh of ['openssh', 'auto']) {
        const result = await attempt(rsh, 'h1:1', { ...options, identity: uncertified });
        expect(result.failures[0]).toMatchObject({ host: 'h1', cause: 'authentication' });
      }
    });
  });
});
