/** What is this machine, and what is one host. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, LOGIN_ADDRESS } from '../rig/cluster.ts';
import { startSshd } from '../rig/cluster/sshd.ts';
import { Command } from '../rig/command.ts';

const print = ['sh', '-c', 'echo $(hostname) $RANK $LOCAL_RANK $LOCAL_WORLD_SIZE'];

describeIf(clusterUnavailable(), 'hosts and machines', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.start(1);
    for (const port of [2222, 2223]) await startSshd(cluster, 'h1', port);
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  /** The lines of stdout, sorted. */
  async function run(options: readonly string[], words = print) {
    const extra = 'StrictHostKeyChecking no';
    const ssh = await cluster.sshClient('any-key', { knownHosts: '/dev/null', extra });
    const argv = ['--tag-output=none', ...options, ...words];
    const { stdout, ...end } = await Command.run(argv, { cluster, environment: cluster.environment(ssh) });
    return { ...end, lines: stdout.trim().split('\n').toSorted() };
  }
  async function hostfile(...lines: readonly string[]): Promise<string[]> {
    const file = join(cluster.state, 'hostfile');
    await writeFile(file, lines.map((line) => `${line}\n`).join(''));
    return ['--hostfile', file];
  }

  it('an address and a name of this machine are this machine, which needs no ssh', async () => {
    const options = await hostfile(`${LOGIN_ADDRESS} slots=1`, 'login slots=1', 'localhost slots=1');
    const { status, lines, stderr } = await run(['--rsh', '/nonexistent', ...options]);
    expect({ status, lines, stderr }).toEqual({
      status: 0,
      lines: ['login 0 0 3', 'login 1 1 3', 'login 2 2 3'],
      stderr: '',
    });
  });

  it.each(['ssh2', 'openssh'])(
    'two ports of one name are two hosts, and the launcher warns of one machine under two names and counts its local ranks together (%s)',
    async (rsh) => {
      const options = await hostfile('h1 port=2222 slots=1', 'h1 port=2223 slots=2');
      const { status, lines, stderr } = await run(['--rsh', rsh, ...options]);
      expect({ status, lines }).toEqual({ status: 0, lines: ['h1 0 0 3', 'h1 1 1 3', 'h1 2 2 3'] });
      expect(stderr).toMatch(
        /^ncclrun: h1:2222 and h1:2223 are one machine: its ranks are numbered together \(LOCAL_RANK\), but exchange data as if on 2 hosts; name it once\n$/u,
      );
    },
  );

  it('localhost with a port is a host of its own, beside this machine', async () => {
    const options = await hostfile('localhost slots=1', 'localhost port=2222 slots=1');
    const { stdout } = await Command.run([...options, '--dry-run', '--json', 'true'], { cluster });
    expect(JSON.parse(stdout)).toMatchObject({
      hosts: [
        { name: 'localhost', local: true },
        { name: 'localhost:2222', local: false },
      ],
    });
  });

  it('the launcher warns of ports that stand where slots go', async () => {
    const options = await hostfile(...[3331, 3332, 3333, 3334].map((port) => `127.0.0.1:${port}`));
    const { status, stderr } = await run(['-n', '1', ...options], ['true']);
    expect({ status, stderr }).toEqual({
      status: 0,
      stderr: 'ncclrun: 127.0.0.1:3331 and 3 more mean slots; a port is written in a hostfile: 127.0.0.1 port=3331\n',
    });
  });
});
