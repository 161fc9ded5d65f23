/** NCCL_SOCKET_IFNAME chooses the interfaces by which ranks of several hosts reach each other. */
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';

describeIf(clusterUnavailable(), 'hosts with a second interface', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.start(2);
    const [first, second] = cluster.hosts;
    for (const [host, own, other] of [
      [first, 11, 12],
      [second, 12, 11],
    ] as const) {
      await host?.exec('ip', 'link', 'add', 'data0', 'type', 'veth', 'peer', 'name', 'other0');
      await host?.exec('ip', 'address', 'add', `10.79.0.${own}/32`, 'dev', 'data0');
      for (const end of ['data0', 'other0']) await host?.exec('ip', 'link', 'set', end, 'up');
      await host?.exec('ip', 'route', 'add', `10.79.0.${other}/32`, 'via', `10.77.0.${other}`);
    }
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  const reduce = [
    process.execPath,
    '--disable-warning=ExperimentalWarning',
    join(repository, 'examples/all-reduce.ts'),
  ];
  const run = (interfaces: string) => {
    const program = ['sh', '-c', 'echo at $MASTER_ADDR; exec "$@"', 'sh', ...reduce];
    const words = ['-H', 'h1:1,h2:1', '-x', `NCCL_SOCKET_IFNAME=${interfaces}`, '--init-timeout', '20', ...program];
    return Command.run(words, { cluster });
  };

  it.each([
    ['data', '10.79.0.11'],
    ['=data0', '10.79.0.11'],
    ['^data', '10.77.0.11'],
  ])('ranks connect through the interface that NCCL_SOCKET_IFNAME=%s selects', async (interfaces, address) => {
    const { status, stdout, stderr } = await run(interfaces);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toContain('every element is 3');
    expect(stdout.match(/at 10\.\S+$/gm)).toEqual([`at ${address}`, `at ${address}`]);
  });

  it('a NCCL_SOCKET_IFNAME that matches no interface ends the job and lists those that exist', async () => {
    const { status, stderr } = await run('ib7');
    expect(status).not.toBe(0);
    expect(stderr).toMatch(
      /NCCL_SOCKET_IFNAME=ib7 names no network interface of this host that is up and has an address; it has .*data0 \(10\.79\.0\.1/,
    );
    expect(stderr).toContain('name interfaces that this host has');
  });

  it.each([
    ['NCCL_SOCKET_IFNAME=ib7', 'NCCL_SOCKET_IFNAME=ib7 in this rank.s environment does not admit eth0'],
    ['NCCL_SOCKET_IFNAME==data0', 'NCCL_SOCKET_IFNAME==data0 in this rank.s environment does not admit eth0'],
    ['NCCL_SOCKET_IFNAME=^eth', 'NCCL_SOCKET_IFNAME=.eth in this rank.s environment does not admit eth0'],
    ['NCCL_SOCKET_FAMILY=AF_INET6', 'NCCL_SOCKET_FAMILY=AF_INET6 in this rank.s environment does not admit eth0'],
    ['NCCL_SOCKET_FAMILY=IPv6', 'NCCL_SOCKET_FAMILY=IPv6 in this rank.s environment is neither AF_INET nor AF_INET6'],
  ])(
    "%s in the environment of one host's ranks ends the job with what the job uses there",
    async (variable, message) => {
      const script = `test "$(hostname)" = h1 || export '${variable}'; exec "$@"`;
      const words = ['-H', 'h1:1,h2:1', '--init-timeout', '20', 'sh', '-c', script, 'sh', ...reduce];
      const { status, stderr } = await Command.run(words, { cluster });
      expect(status).not.toBe(0);
      expect(stderr).toMatch(new RegExp(`rank 1 of 2 on h2: ${message}`));
      expect(stderr).toMatch(/this host has data0 \(10\.79\.0\.12.*eth0 \(10\.77\.0\.12/);
    },
  );

  it('variables that admit what the job uses may be set for the ranks of one host', async () => {
    const script =
      'test "$(hostname)" = h1 || export NCCL_SOCKET_IFNAME=^ib,data NCCL_SOCKET_FAMILY=AF_INET; exec "$@"';
    const words = ['-H', 'h1:1,h2:1', 'sh', '-c', script, 'sh', ...reduce];
    const { status, stderr } = await Command.run(words, { cluster });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  });
});
