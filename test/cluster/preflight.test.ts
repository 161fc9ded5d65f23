/** Hosts of a job that differ in what they should have in common. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';

describeIf(clusterUnavailable(), 'hosts that differ', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.start(3);
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  it('the launcher reports a difference in /dev/shm before the ranks start, and the job runs', async () => {
    const run = () => Command.run(['-H', 'h1:1,h2:1,h3:1', '--tag-output=none', 'true'], { cluster });
    expect(await run()).toMatchObject({ status: 0, stderr: '' });
    await cluster.host('h3').exec('mount', '-t', 'tmpfs', '-o', 'size=64m', 'tmpfs', '/dev/shm');
    const message = 'ncclrun: hosts differ in /dev/shm: h[1-2]: 2 GiB; h3: 64 MiB\n';
    expect(await run()).toMatchObject({ status: 0, stderr: message });
  });
});
