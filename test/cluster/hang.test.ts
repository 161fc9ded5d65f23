/** Ranks of several hosts that hang in an operation. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { parseResult } from '../rig/result.ts';
import { Steering } from '../rig/steering.ts';

describeIf(clusterUnavailable(), 'a hang across hosts', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.start(3);
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  it('the hang report names the missing rank on another host', async () => {
    await using steering = await Steering.open();
    const options = ['--hang-after', '0.5', '-H', 'h1:2,h2:1,h3:1', ...steering.options];
    await using command = Command.start([...options, steering.program], { cluster });
    const ranks = await steering.ranks(4);
    await Promise.all(ranks.map((rank) => rank.init()));
    const waiting = ranks.filter(({ rank }) => rank !== 2).map((rank) => rank.allReduce(1));
    const line = await command.line('stderr', /without progress/);
    expect(line).toMatch(
      /has begun no operation(?:, asleep in \w+)?: ranks 0-1,3 wait in operation 1 \(allReduce of 4 bytes\)/,
    );
    expect(line).toContain('ncclrun: rank 2 on h2 (pid ');
    expect(await ranks[2]?.allReduce(1)).toEqual([4]);
    await Promise.all(waiting);
    await Promise.all(ranks.map((rank) => rank.tell({ do: 'close' })));
    for (const rank of ranks) void rank.exit(0);
    expect((await command.outcome).status).toBe(0);
  });

  it('a process that is stopped on one host is blamed for the communicators of all', async () => {
    await using steering = await Steering.open();
    const options = ['--json', '--on-hang', 'abort', '--hang-after', '0.5', '-H', 'h1:2,h2:1,h3:1'];
    await using command = Command.start([...options, ...steering.options, steering.program], { cluster });
    const ranks = await steering.ranks(4);
    await Promise.all(ranks.map((rank) => rank.init()));
    await Promise.all(ranks.map((rank) => rank.tell({ do: 'split' })));
    const stopped = ranks[2];
    if (stopped === undefined) throw new Error('there are four');
    process.kill(stopped.machinePid, 'SIGSTOP');
    const others = ranks.filter((rank) => rank !== stopped);
    const waiting = others.map((rank, index) =>
      index === 0 ? rank.allReduce(1) : rank.tell({ do: 'allReduceInSplit', values: [1] }),
    );
    await Promise.allSettled(waiting);
    const { status, stdout } = await command.outcome;
    expect(status).toBe(124);
    const stoppedRank = { ranks: '2', host: 'h2', pid: stopped.pid, where: 'stopped' };
    expect(parseResult(stdout).failures).toMatchObject([
      { type: 'hang', verdict: { kind: 'stopped', confidence: 'certain', blamed: [stoppedRank] } },
    ]);
  });

  it.each([
    [
      ['h1:1', 'h2:1'],
      'h1',
      /messages on \d connections between (h\d) and (?!\1)h\d \(eth0 to eth0\) have not arrived, and nothing has for \d+\.\d s$/,
    ],
    [
      ['h1:1', 'h2:1', 'h3:1'],
      'h2',
      /(?:messages? from rank \d on h\d to rank \d on h\d|messages on \d connections between h\d and h\d) \(eth0 to eth0\) ha(?:s|ve) not arrived/,
    ],
  ])('the hang report of %j names the connections that carry nothing, and the NICs', async (hosts, cut, blocked) => {
    await using steering = await Steering.open();
    const options = ['--hang-after', '0.5', '--json', '-H', hosts.join(','), ...steering.options];
    await using command = Command.start([...options, steering.program], { cluster });
    const ranks = await steering.ranks(hosts.length);
    await Promise.all(ranks.map((rank) => rank.init()));
    await Promise.all(ranks.map((rank) => rank.allReduce(1)));
    const others = hosts.map((host) => host.slice(0, 2)).filter((host) => host !== cut);
    const rules = others.flatMap((host) => [
      ['INPUT', '-s', cluster.host(host).address, '-j', 'DROP'],
      ['OUTPUT', '-d', cluster.host(host).address, '-j', 'DROP'],
    ]);
    for (const rule of rules) await cluster.host(cut).exec('iptables', '-I', ...rule);
    const sums = ranks.map((rank) => rank.allReduce(1));
    const line = await command.line('stderr', /without progress/);
    expect(line).toContain(
      `ncclrun: no rank is behind, and none makes progress: ranks 0-${hosts.length - 1} wait in operation 2`,
    );
    expect(line).toMatch(blocked);
    for (const rule of rules) await cluster.host(cut).exec('iptables', '-D', ...rule);
    expect(await Promise.all(sums)).toEqual(hosts.map(() => [hosts.length]));
    await Promise.all(ranks.map((rank) => rank.tell({ do: 'close' })));
    for (const rank of ranks) void rank.exit(0);
    const { status, stdout } = await command.outcome;
    expect(status).toBe(0);
    const [verdict] = parseResult(stdout).verdicts;
    expect(verdict).toMatchObject({ kind: 'stuck-inside', confidence: 'likely' });
    if (hosts.length > 2) expect(verdict?.blamed.map(({ host }) => host)).toEqual([cut]);
  });
});
