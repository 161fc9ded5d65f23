/** Which ports of a host are open to others while a job runs there: those of engines, at the address by which its peers reach it. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { Steering } from '../rig/steering.ts';

describeIf(clusterUnavailable(), 'the listeners of a host', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.start(2);
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  const listeners = async (): Promise<string[]> => {
    const all = (await cluster.hosts[0]?.exec('ss', '-Hltn')) ?? '';
    return all
      .split('\n')
      .map((line) => line.split(/\s+/)[3] ?? '')
      .filter((address) => address !== '');
  };

  it('the engines listen only at the planned address of their host', async () => {
    const before = await listeners();
    await using steering = await Steering.open();
    await using command = Command.start(['-H', 'h1:1,h2:1', ...steering.options, steering.program], { cluster });
    const ranks = await steering.ranks(2);
    await Promise.all(ranks.map((rank) => rank.init()));
    const ours = (await listeners()).filter((address) => !before.includes(address));
    expect(ours.length).toBeGreaterThan(0);
    for (const address of ours) expect(address).toMatch(/^10\.77\.0\.11:\d+$/);
    for (const rank of ranks) rank.tell({ do: 'exit', code: 0 }).catch(() => undefined);
    expect((await command.outcome).status).toBe(0);
  });

  it('all listeners of a job are in the range of --port-range', async () => {
    const before = await listeners();
    await using steering = await Steering.open();
    const words = ['--port-range', '20000-20015', '-H', 'h1:4,h2:1', ...steering.options, steering.program];
    await using command = Command.start(words, { cluster });
    const ranks = await steering.ranks(5);
    await Promise.all(ranks.map((rank) => rank.init()));
    const ours = (await listeners()).filter((address) => !before.includes(address));
    expect(ours.length).toBeGreaterThanOrEqual(4);
    for (const address of ours) expect(address).toMatch(/^10\.77\.0\.11:200(0[0-9]|1[0-5])$/);
    for (const rank of ranks) rank.tell({ do: 'exit', code: 0 }).catch(() => undefined);
    expect((await command.outcome).status).toBe(0);
  });

  it('a firewall that drops all ports but those of --port-range lets a job run, and no job without it', async () => {
    const rules = [
      ['-i', 'lo', '-j', 'ACCEPT'],
      ['-m', 'conntrack', '--ctstate', 'ESTABLISHED,RELATED', '-j', 'ACCEPT'],
      ['-p', 'tcp', '--dport', '22', '-j', 'ACCEPT'],
      ['-p', 'tcp', '--dport', '20000:20015', '-j', 'ACCEPT'],
      ['-p', 'tcp', '-j', 'DROP'],
    ];
    for (const host of cluster.hosts) for (const rule of rules) await host.exec('iptables', '-A', 'INPUT', ...rule);
    try {
      const job = ['-H', 'h1:2,h2:2', '--timeout', '8', 'examples/all-reduce.ts'];
      const passed = await Command.run(['--port-range', '20000-20015', ...job], { cluster });
      expect(passed.stderr).toBe('');
      expect(passed.stdout).toContain('4 ranks on 2 hosts summed');
      expect((await Command.run(job, { cluster })).status).not.toBe(0);
      const script = 'echo port $MASTER_PORT';
      const { stdout } = await Command.run(['--port-range', '20000-20015', '-H', 'h1:1,h2:1', 'sh', '-c', script], {
        cluster,
      });
      expect(stdout).toMatch(/^\[0\] port 200(0[0-9]|1[0-5])$/m);
    } finally {
      for (const host of cluster.hosts) await host.exec('iptables', '-F', 'INPUT');
    }
  });

  it('a range that others have used up ends the job with the host, the range and what to do', async () => {
    const hold =
      'import socket,sys\ns=[socket.create_server(("",p)) for p in range(20000,20005)]\nprint("held",flush=True)\nsys.stdin.read()';
    const inside = ['--target', `${cluster.host('h2').init}`, '--all', '--', 'python3', '-c', hold];
    await using holder = Command.start(inside, { program: 'nsenter', stdin: 'pipe' });
    await holder.line('stdout', /^held$/);
    const words = ['--port-range', '20000-20004', '-H', 'h1:1,h2:1', 'examples/all-reduce.ts'];
    const { status, stderr } = await Command.run(words, { cluster });
    expect(status).toBe(125);
    expect(stderr).toMatch(/h2: no port of 20000-20004 \(--port-range\) is free; widen the range/);
  });
});
