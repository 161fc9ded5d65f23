/** ncclCommShrink and ncclCommRevoke where the ranks are on several hosts. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { compileWithEngine } from '../rig/compile.ts';
import { agentOn, killHard } from '../rig/faults.ts';
import { shrinkingStates, shrinkWithDead, shrinkWithoutDead } from '../rig/shrink.ts';

describeIf(clusterUnavailable(), 'ncclCommShrink', () => {
  let cluster: Cluster;
  let directory = '';
  let alive = '';
  let dead = '';
  beforeAll(async () => {
    cluster = await Cluster.start(2);
    directory = await mkdtemp(join(repository, 'build/test-shrink-'));
    alive = await compileWithEngine('test/rig/programs/shrink.c', directory);
    dead = await compileWithEngine('test/rig/programs/shrink-dead.c', directory);
  });
  afterAll(async () => {
    await cluster[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  });

  it.each(['h1:2,h2:3', 'h1:2,h2:1'])('the shrink program succeeds on %s with all ranks alive', async (hosts) => {
    const { status, stdout, stderr } = await Command.run(['-H', hosts, alive], { cluster });
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: expect.stringMatching(/ok\n$/), stderr: '' });
  });

  const places = ['h1:3,h2:1', 'h1:2,h2:2'];
  it.each(places.flatMap((hosts) => shrinkingStates.map((state) => [hosts, state] as const)))(
    'the survivors on %s shrink after kill -9 of a rank of h2 (state %s)',
    (hosts, state) => shrinkWithoutDead(dead, state, ['-H', hosts], state === 'part' ? 2 : 3, cluster),
  );

  it.each(shrinkingStates)('the job ends with 0 after kill -9 of a rank (%s)', (state) =>
    shrinkWithoutDead(dead, state, ['-H', 'h1:2,h2:2', '--on-failure', 'shrink'], state === 'part' ? 2 : 3, cluster),
  );

  it('a job with --on-failure shrink continues after a host is lost, and reports the loss', async () => {
    const words = ['-H', 'h1:1,h2:2', '--on-failure', 'shrink', 'sh', '-c'];
    const script = 'echo up; while [ $RANK != 0 ] || [ ! -e "$0" ]; do sleep 0.02; done; echo done';
    const file = join(directory, 'go on');
    await using command = Command.start([...words, script, file], { cluster });
    for (const rank of [0, 1, 2]) await command.line('stdout', new RegExp(`^\\[${rank}\\] up`));
    killHard(agentOn(cluster, 'h2'));
    await command.line('stderr', /1 rank goes on without it/);
    await writeFile(file, '');
    const { status, stdout, stderr } = await command.outcome;
    expect({ status, stdout }).toEqual({ status: 0, stdout: expect.stringContaining('[0] done') });
    expect(stderr).toMatch(/h2 is lost/);
    for (const name of ['h1', 'h2']) await cluster.host(name).empty(5000);
  });

  it.each(places)('a shrink on %s that needs a dead rank of h2 fails and names the rank', (hosts) =>
    shrinkWithDead(dead, ['-H', hosts], 2, cluster),
  );
});
