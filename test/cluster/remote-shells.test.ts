/** One suite for every way to a host, against real sshds; a command that enters a host's namespaces stands for any CMD. */
import { existsSync } from 'node:fs';
import { chmod, copyFile, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, repository } from '../rig/cluster.ts';
import { makeKeyPair } from '../rig/cluster/sshd.ts';
import { Command } from '../rig/command.ts';
import { until } from '../rig/until.ts';
import { inFull, sample } from '../rig/whole.ts';

/** CMD [user@]host command: what it is called with lands in a file, the command on the host. */
const enter = (state: string) => `#!/bin/sh
echo "$#:$1" >>${state}/entered
host=\${1#*@}
[ -e ${state}/$host/init.pid ] || { echo "enter: could not resolve hostname $host" >&2; exit 1; }
exec nsenter --target "$(cat ${state}/$host/init.pid)" --all -- sh -c "$2"
`;

describeIf(clusterUnavailable(), 'every remote shell', () => {
  let cluster: Cluster;
  let command = '';
  beforeAll(async () => {
    cluster = await Cluster.start(3, { sshd: 'AcceptEnv TEST_SE* TEST_UNSET TEST_OTHER' });
    command = join(cluster.state, 'enter');
    await writeFile(command, enter(cluster.state));
    await chmod(command, 0o755);
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  describe.each(['auto', 'ssh2', 'openssh', 'CMD'])('--rsh %s', (name) => {
    const remoteShell = () => ['--rsh', name === 'CMD' ? command : name];

    it('the launcher starts ranks on several hosts and returns their exit status', async () => {
      const script = 'echo $RANK $(hostname)';
      const { status, stdout } = await Command.run(
        [...remoteShell(), '-H', 'h2:1,h1:1', '--tag-output=none', 'sh', '-c', script],
        {
          cluster,
        },
      );
      expect(status).toBe(0);
      expect(stdout.trim().split('\n').toSorted()).toEqual(['0 h2', '1 h1']);
      const failing = await Command.run([...remoteShell(), '-H', 'h2:1,h1:1', 'sh', '-c', 'exit $((RANK * 3))'], {
        cluster,
      });
      expect(failing.status).toBe(3);
    });

    it('the rank receives arguments and environment unchanged', async () => {
      const typed = ['a b', "it's", '$HOME', '*', '"', ';', '\\', 'ü', '', '\n'];
      const options = [...remoteShell(), '-H', 'h1:1', '-x', 'GIVEN=x $(y)'];
      const argv = [...options, 'sh', '-c', 'printf "%s\\0" "$GIVEN" "$@"', 'sh', ...typed];
      const { stdout } = await Command.run(argv, { cluster });
      expect(stdout.split('\0').slice(0, -1)).toEqual(['x $(y)', ...typed]);
    });

    it('several megabytes pass complete in both directions', async () => {
      const text = Array.from({ length: 300_000 }, (_, line) => `line ${line}\n`).join('');
      await using job = Command.start([...remoteShell(), '-H', 'h1:1', 'cat'], { cluster, stdin: 'pipe' });
      job.process.stdin?.end(text);
      const { status, stdout } = await job.outcome;
      expect({ status, same: stdout === text }).toEqual({ status: 0, same: true });
    });

    it('the launcher names an unknown host', async () => {
      const { failures, outcome } = await Command.result([...remoteShell(), '-H', 'h1:1,nowhere:1', '/bin/true'], {
        cluster,
      });
      expect(failures[0]).toMatchObject({ type: 'host-unreachable', host: 'nowhere', cause: 'unknown-host' });
      expect(outcome.status).toBe(125);
      for (const host of cluster.hosts) await host.empty();
    });

    it('the launcher names a host on which ncclrun is missing', async () => {
      const empty = join(cluster.state, `empty-${name}`);
      await mkdir(empty);
      await cluster.host('h2').exec('mount', '--bind', empty, repository);
      try {
        const { failures } = await Command.result(
          [...remoteShell(), '--stage', 'never', '-H', 'h1:1,h2:1', '/bin/true'],
          {
            cluster,
          },
        );
        expect(failures[0]).toMatchObject({ type: 'agent', host: 'h2' });
      } finally {
        await cluster.host('h2').exec('umount', repository);
      }
    });

    it.each(['SIGINT', 'SIGTERM', 'SIGKILL'] as const)('no process remains on any host after %s', async (signal) => {
      await using job = Command.start([...remoteShell(), '-H', 'h1:1,h2:1', 'sh', '-c', 'echo up; exec sleep 1000'], {
        cluster,
      });
      await job.line('stdout', /\[0\] up/);
      await job.line('stdout', /\[1\] up/);
      job.signal(signal);
      await job.outcome;
      await job.nothingLeft();
      for (const host of cluster.hosts) await host.empty(5000);
    });

    it('^C ends the launcher at once while a host does not answer', async () => {
      if (name === 'CMD') return;
      await cluster.host('h3').drop();
      try {
        await using job = Command.start([...remoteShell(), '-v', '-H', 'h1:1,h3:1', '/bin/true'], { cluster });
        await job.line('stderr', /h1: up/);
        job.signal('SIGINT');
        expect((await job.outcome).status).toBe(130);
        await job.nothingLeft(3000); // ssh's own patience is 5 s
      } finally {
        await cluster.host('h3').accept();
      }
    });
  });

  it('CMD gets the arguments [user@]host and the command line, and rejects a port', async () => {
    await Command.run(['--rsh', command, '-H', 'ann@h1:1', '/bin/true'], { cluster });
    expect(await cluster.inLogin('tail', '-n', '1', join(cluster.state, 'entered'))).toBe('2:ann@h1\n');
    const hostfile = join(cluster.state, 'hostfile');
    await writeFile(hostfile, 'h1 port=2222\n');
    const { failures } = await Command.result(['--rsh', command, '--hostfile', hostfile, '/bin/true'], { cluster });
    expect(failures[0]).toMatchObject({
      type: 'host-unreachable',
      host: 'h1',
      detail: expect.stringContaining('2222'),
    });
  });

  it('the launcher names an rsh command that does not exist', async () => {
    const { status, stderr } = await Command.run(['--rsh', '/nonexistent/rsh -x', '-H', 'h1:1', '/bin/true'], {
      cluster,
    });
    expect(status).toBe(125);
    expect(stderr).toContain('/nonexistent/rsh');
  });

  it("auto reports why it uses the system's ssh", async () => {
    const extra = `ProxyCommand ${repository}/build/ncclrun-dial %h %p 5\n  ProxyUseFdpass yes`;
    const environment = cluster.environment(await cluster.sshClient('proxy', { extra }));
    const argv = ['-v', '-H', 'h1:1', '/bin/true'];
    const auto = await Command.run(argv, { cluster, environment });
    expect(auto.status).toBe(0);
    expect(auto.stderr).toContain("h1: the system's ssh is used, since ProxyCommand is set for h1");
    const { failures } = await Command.result(['--rsh', 'ssh2', ...argv], { cluster, environment });
    expect(failures[0]).toMatchObject({ host: 'h1', detail: 'ssh2 cannot go there: ProxyCommand is set for h1' });
  });

  it.each(['ssh2', 'openssh'])(
    '%s passes the SendEnv and SetEnv variables that the host accepts to the ranks',
    async (rsh) => {
      const extra = 'SendEnv TEST_SENT* TEST_UNSET TEST_REFUSED TEST_SET\n  SetEnv "TEST_SET=two words" TEST_CLOSED=x';
      const environment = {
        ...cluster.environment(await cluster.sshClient('environment', { extra })),
        TEST_SENT_A: 'sent, as it is',
        TEST_SENT_B: 'ü',
        TEST_REFUSED: 'x',
        TEST_SET: 'ours',
        TEST_OTHER: 'x',
      };
      const argv = ['--rsh', rsh, '-H', 'h1:1', 'env'];
      const { stdout } = await Command.run(argv, { cluster, environment });
      const ours = stdout.split('\n').filter((line) => line.startsWith('TEST_'));
      expect(ours.toSorted()).toEqual(['TEST_SENT_A=sent, as it is', 'TEST_SENT_B=ü', 'TEST_SET=two words']);
    },
  );

  it('every remote shell reports an error in the ssh configuration', async () => {
    const environment = cluster.environment(await cluster.sshClient('mistaken', { extra: 'Prot 22' }));
    for (const rsh of ['auto', 'ssh2', 'openssh']) {
      const argv = ['--rsh', rsh, '-H', 'h1:1', '/bin/true'];
      const { failures } = await Command.result(argv, { cluster, environment });
      expect(failures[0]).toMatchObject({ type: 'host-unreachable', host: 'h1' });
      expect(JSON.stringify(failures[0])).toMatch(/bad configuration option/i);
    }
  });

  it('auto uses ssh2 with the defaults of OpenSSH when there is no ssh program', async () => {
    const home = join(cluster.state, 'home');
    await mkdir(join(home, '.ssh'), { recursive: true });
    await copyFile(join(cluster.state, 'id'), join(home, '.ssh/id_ed25519'));
    await copyFile(join(cluster.state, 'known_hosts'), join(home, '.ssh/known_hosts'));
    const argv = ['PATH=/nonexistent', `HOME=${home}`, join(repository, 'bin/ncclrun'), '-H', 'h1:1', '/bin/hostname'];
    const { status, stdout, stderr } = await Command.run(argv, { cluster, program: 'env' });
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: 'h1\n', stderr: '' });
  });

  it('ssh2 uses the keys of the ssh agent and names the key that it could not use', async () => {
    const identity = join(cluster.state, 'locked');
    await makeKeyPair(identity);
    await cluster.inLogin('ssh-keygen', '-q', '-p', '-P', '', '-N', 'secret', '-f', identity);
    const environment = cluster.environment(await cluster.sshClient('locked-bin', { identity }));
    const { failures } = await Command.result(['--rsh', 'ssh2', '-H', 'h1:1', '/bin/true'], { cluster, environment });
    expect(failures[0]).toMatchObject({ cause: 'authentication' });
    expect(JSON.stringify(failures[0])).toMatch(/locked is encrypted, and no agent holds it/);

    const socket = join(cluster.state, 'agent.sock');
    await using agent = Command.start(['-D', '-a', socket], { program: 'ssh-agent', cluster });
    await until('an agent', () => existsSync(socket));
    await cluster.inLogin('env', `SSH_AUTH_SOCK=${socket}`, 'ssh-add', '-q', join(cluster.state, 'id'));
    const other = {
      ...cluster.environment(await cluster.sshClient('agent-bin', { identity, extra: 'IdentitiesOnly no' })),
      SSH_AUTH_SOCK: socket,
    };
    for (const rsh of ['ssh2', 'auto', 'openssh']) {
      expect(
        await Command.result(['--rsh', rsh, '-H', 'h1:1,h2:1', '/bin/true'], { cluster, environment: other }),
      ).toMatchObject({ ok: true });
    }
    expect(agent.process.exitCode).toBeNull();
  });
});

describeIf(clusterUnavailable(), 'many simultaneous connections', () => {
  it.each(sample(['ssh2', 'openssh'], 2))(
    '%s serves several jobs on a host whose sshd limits MaxStartups',
    async (rsh) => {
      await using cluster = await Cluster.start(1, { sshd: 'MaxStartups 2:100:3' });
      const jobs = Array.from({ length: 6 }, () => Command.run(['--rsh', rsh, '-H', 'h1:1', '/bin/true'], { cluster }));
      expect((await Promise.all(jobs)).map(({ status, stderr }) => ({ status, stderr }))).toEqual(
        jobs.map(() => ({ status: 0, stderr: '' })),
      );
    },
  );

  it.each(inFull(['ssh2 reaches 32 hosts, also through a busy jump host']))('%s', async () => {
    await using cluster = await Cluster.start(32, { sshd: 'MaxStartups 2:100:3' });
    const hosts = cluster.hosts.map(({ name }) => `${name}:1`).join(',');
    const direct = await Command.run(['--rsh', 'ssh2', '-H', hosts, 'hostname'], { cluster });
    expect(direct).toMatchObject({ status: 0 });
    expect(new Set(direct.stdout.match(/h\d+/g))).toEqual(new Set(cluster.hosts.map(({ name }) => name)));
    const extra = 'Host *,!h1\n  ProxyJump h1\nHost *';
    const environment = cluster.environment(await cluster.sshClient('jump', { extra }));
    const behind = await Command.run(['--rsh', 'ssh2', '-H', hosts, 'hostname'], { cluster, environment });
    expect(behind).toMatchObject({ status: 0 });
  });
});
