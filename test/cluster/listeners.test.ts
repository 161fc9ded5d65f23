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
});
