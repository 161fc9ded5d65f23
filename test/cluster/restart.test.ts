/** Jobs on several hosts that are started again: agents stay, and are connected to anew only where they were lost. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { signalFound } from '../rig/processes.ts';

describeIf(clusterUnavailable(), 'restarts', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.start(3);
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  const logins = (host: string): number =>
    readFileSync(join(cluster.state, host, 'sshd.log'), 'utf8').match(/Accepted publickey/g)?.length ?? 0;

  it('a restart reuses the running agents', async () => {
    const before = ['h1', 'h2', 'h3'].map(logins);
    const all = `exec ${process.execPath} --disable-warning=ExperimentalWarning ${join(repository, 'examples/all-reduce.ts')}`;
    const script = `[ $RANK = 2 ] && [ $TORCHELASTIC_RESTART_COUNT -lt 3 ] && kill -9 $$; ${all}`;
    const run = await Command.run(['-H', 'h1:1,h2:1,h3:1', '--max-restarts', '3', 'sh', '-c', script], { cluster });
    expect({ status: run.status, right: run.stdout.includes('every element is 6') }).toEqual({
      status: 0,
      right: true,
    });
    expect(run.stderr.match(/rank 2 on h3 .* died of SIGKILL|rank 2 on h3/g)?.length).toBeGreaterThanOrEqual(3);
    expect(['h1', 'h2', 'h3'].map(logins)).toEqual(before.map((count) => count + 1));
    for (const name of ['h1', 'h2', 'h3']) await cluster.host(name).empty();
  });

  it('a restart reconnects to a host whose agent was killed', async () => {
    const script = 'echo up $TORCHELASTIC_RESTART_COUNT; [ $TORCHELASTIC_RESTART_COUNT = 1 ] || exec sleep 1000';
    await using command = Command.start(['-H', 'h1:1,h2:1', '--max-restarts', '1', 'sh', '-c', script], { cluster });
    for (const rank of [0, 1]) await command.line('stdout', new RegExp(`^\\[${rank}\\] up 0`));
    const agent = cluster
      .host('h2')
      .guests()
      .find(({ argv }) => argv.some((word) => word.endsWith('agent.cjs')));
    signalFound(agent, 'SIGKILL');
    const { status, stdout } = await command.outcome;
    expect({ status, again: stdout.match(/up 1/g)?.length }).toEqual({ status: 0, again: 2 });
    for (const name of ['h1', 'h2']) await cluster.host(name).empty();
  });

  it('no process remains on the hosts when the launcher is killed after a restart', async () => {
    const script =
      '[ $TORCHELASTIC_RESTART_COUNT = 0 ] && [ $RANK = 1 ] && exit 1; echo up $TORCHELASTIC_RESTART_COUNT; exec sleep 1000';
    await using command = Command.start(['-H', 'h1:1,h2:1', '--max-restarts', '5', 'sh', '-c', script], { cluster });
    await command.line('stdout', /^\[1\] up 1/);
    command.process.kill('SIGKILL');
    await command.outcome;
    for (const name of ['h1', 'h2']) await cluster.host(name).empty(5000);
  });
});
