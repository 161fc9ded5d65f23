/** Hosts with several addresses: those by which they reach each other are found and taken. */
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';

const second = (index: number): string => `10.78.0.${11 + index}`;

describeIf(clusterUnavailable(), 'hosts with several addresses', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.start(3);
    for (const [index, host] of cluster.hosts.entries()) {
      await host.exec('ip', 'address', 'add', '172.17.0.1/32', 'dev', 'eth0'); // everywhere the same, as a container engine's bridge
      await host.exec('ip', 'address', 'add', `${second(index)}/24`, 'dev', 'eth0');
    }
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  const reduce = [
    process.execPath,
    '--disable-warning=ExperimentalWarning',
    join(repository, 'examples/all-reduce.ts'),
  ];
  const run = (...words: readonly string[]) =>
    Command.run(
      ['-H', 'h1:1,h2:1,h3:1', '--init-timeout', '20', 'sh', '-c', 'echo at $MASTER_ADDR; exec "$@"', 'sh', ...words],
      {
        cluster,
      },
    );

  it('ranks use the address of the ssh connection if it is reachable', async () => {
    const { status, stdout, stderr } = await run(...reduce);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout.match(/at 10\.77\.0\.11$/gm)).toHaveLength(3);
  });

  it('ranks use another address where a firewall blocks the first one', async () => {
    for (const [index, host] of cluster.hosts.entries())
      for (const from of [11, 12, 13])
        await host.exec(
          'iptables',
          '-A',
          'INPUT',
          '-s',
          `10.77.0.${from}`,
          '-d',
          `10.77.0.${11 + index}`,
          '-j',
          'DROP',
        );
    const { status, stdout, stderr } = await run(...reduce);
    expect({ status, stderr, right: stdout.includes('every element is 6') }).toEqual({
      status: 0,
      stderr: '',
      right: true,
    });
    expect(stdout.match(/at 10\.78\.0\.11$/gm)).toHaveLength(3);
  });

  it('the launcher names a host that its peers cannot reach, and the addresses tried', async () => {
    await cluster.host('h2').exec('iptables', '-A', 'INPUT', '-s', '10.78.0.0/24', '-d', second(1), '-j', 'DROP');
    const { status, stderr } = await run('true');
    expect({ status, stderr }).toEqual({
      status: 0,
      stderr: expect.stringMatching(/h1 cannot reach h2: tried 10\.77\.0\.12, /),
    });
  });
});
