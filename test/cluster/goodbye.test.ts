/** A rank that leaves a communicator while what it sent is still on its way. */
import { existsSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { compileWithEngine } from '../rig/compile.ts';
import { until } from '../rig/until.ts';

describeIf(clusterUnavailable(), 'a rank that leaves while its socket is full', () => {
  it('the peer does not mistake a rank that left in order for a dead one', async () => {
    await using cluster = await Cluster.start(2);
    const directory = await mkdtemp(join(repository, 'build/test-goodbye-'));
    try {
      const program = await compileWithEngine('test/rig/programs/goodbye.c', directory);
      await using command = Command.start(['-H', 'h1:1,h2:1', program, directory], { cluster });
      await until('connected', () => existsSync(join(directory, 'ready-1')));
      await cluster.host('h1').cut();
      writeFileSync(join(directory, 'go'), '');
      await until('rank 1 leaves', () => existsSync(join(directory, 'leaving-1')));
      await delay(100); // without waiting for room it is gone by now
      await cluster.host('h1').uncut();
      expect(await command.outcome).toMatchObject({ status: 0, stderr: '' });
    } finally {
      await rm(directory, { recursive: true });
    }
  });
});
