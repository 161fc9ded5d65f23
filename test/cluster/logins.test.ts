/** Logins that print, fail or end before they run our command, and remote shells that do. */
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';

const LOGIN = 'if [ -r /run/login ]; then . /run/login; fi; exec sh -c "$SSH_ORIGINAL_COMMAND"';

describeIf(clusterUnavailable(), 'the login of a host', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.start(1, { sshd: `ForceCommand ${LOGIN}` });
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  /** `login`: what the login does first. */
  async function result(rsh: string, login: string) {
    await cluster.host('h1').exec('sh', '-c', `cat >/run/login <<'E'\n${login}\nE`);
    return Command.result(['--rsh', rsh, '-H', 'h1:1', 'echo', 'ran'], { cluster });
  }

  it.each(['ssh2', 'openssh'])('may print before it runs our command (%s)', async (rsh) => {
    const { ok, outcome } = await result(
      rsh,
      'printf "Welcome to h1\\n\\033[1mquota 3 %%\\033[0m\\n"; echo beside >&2',
    );
    expect({ ok, stderr: outcome.stderr }).toEqual({ ok: true, stderr: 'ran\n' });
  });

  it.each(['ssh2', 'openssh'])(
    "has its own words when it ends, which are not taken for the remote shell's (%s)",
    async (rsh) => {
      const { failures } = await result(rsh, 'echo "license-server: connection timed out" >&2; exit 1');
      expect(failures[0]).toMatchObject({ type: 'host-unreachable', host: 'h1', cause: 'shell' });
      expect(failures[0]).toHaveProperty(
        'detail',
        'the login ended with status 1 before it ran our command:\nlicense-server: connection timed out',
      );
    },
  );

  it.each(['ssh2', 'openssh'])('that is refused to the user is quoted (%s)', async (rsh) => {
    const { outcome } = await result(rsh, 'echo "This account is currently not available."; exit 1');
    expect(outcome.stderr).toContain('it sent text, which is no frame: "This account is currently not available."');
  });

  it('is not blamed for an ssh that does not run here', async () => {
    const bin = join(cluster.state, 'broken');
    await mkdir(bin);
    const broken = 'echo "ssh: error while loading shared libraries: libcrypto.so.3: cannot open" >&2; exit 127';
    await writeFile(join(bin, 'ssh'), `#!/bin/sh\n${broken}\n`);
    await chmod(join(bin, 'ssh'), 0o755);
    const environment = { PATH: `${bin}:${process.env['PATH']}` };
    const { failures } = await Command.result(['--rsh', 'openssh', '-H', 'h1:1', 'true'], { cluster, environment });
    expect(failures[0]).toMatchObject({ type: 'host-unreachable', cause: 'shell' });
    expect(failures[0]).toHaveProperty('detail', expect.stringContaining('error while loading shared libraries'));
  });
});

describeIf(clusterUnavailable(), 'a host whose ssh has other algorithms than ours', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.start(1, { sshd: 'KexAlgorithms sntrup761x25519-sha512@openssh.com' });
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  it("auto turns to the system's ssh, and says so with -v", async () => {
    const { status, stdout, stderr } = await Command.run(['-v', '-H', 'h1:1', 'echo', 'ran'], { cluster });
    expect({ status, stdout }).toEqual({ status: 0, stdout: 'ran\n' });
    expect(stderr).toContain(
      "h1: the system's ssh is used, since ours has nothing in common with the host's: 10.77.0.11: Handshake failed: no matching key exchange algorithm",
    );
  });

  it('ssh2 names the reason and the way out', async () => {
    const { failures } = await Command.result(['--rsh', 'ssh2', '-H', 'h1:1', 'true'], { cluster });
    expect(failures[0]).toMatchObject({
      detail: expect.stringContaining('no matching key exchange algorithm'),
      remedy: 'try --rsh openssh',
    });
  });
});

describeIf(clusterUnavailable(), 'a user whose only key is encrypted, with GSSAPI turned on', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.start(1);
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  it('learns of the key', async () => {
    const identity = join(cluster.state, 'locked');
    await cluster.inLogin('ssh-keygen', '-q', '-t', 'ed25519', '-N', 'secret', '-f', identity);
    const ssh = await cluster.sshClient('locked-client', { identity, extra: 'GSSAPIAuthentication yes' });
    const environment = { ...cluster.environment(ssh), SSH_AUTH_SOCK: undefined };
    const { failures } = await Command.result(['-H', 'h1:1', 'true'], { cluster, environment });
    expect(failures[0]).toMatchObject({ host: 'h1', cause: 'authentication' });
    expect(failures[0]).toHaveProperty(
      'detail',
      expect.stringContaining(`${identity} is encrypted, and no agent holds it`),
    );
  });
});
