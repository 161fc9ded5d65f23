/** Random collectives over networks that lose, delay and slow down: every element is right. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, repository, type ClusterHost } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { compileWithEngine } from '../rig/compile.ts';

/** Of each network; the campaign of ten minutes takes 200. */
const SECONDS = Number(process.env['NCCLRUN_TEST_SOAK_SECONDS'] ?? 20);

describeIf(clusterUnavailable(), 'random collectives over a bad network', () => {
  let cluster: Cluster;
  let directory: string;
  let program: string;
  beforeAll(async () => {
    cluster = await Cluster.start(2);
    directory = await mkdtemp(join(repository, 'build/test-network-'));
    program = await compileWithEngine('test/rig/programs/random-collectives.c', directory);
  });
  afterAll(async () => {
    await cluster[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  });

  const networks: readonly [string, (host: ClusterHost) => Promise<void>][] = [
    ['loses every hundredth packet', (host) => host.loss(0.01)],
    ['delays packets by 5 to 15 ms', (host) => host.delay(5, 10)],
    ['carries 300 Mb/s', (host) => host.rate('300mbit')],
  ];
  it.each(networks)(
    'every element is right where the network %s',
    { timeout: (SECONDS + 120) * 1000 },
    async (_, worsen) => {
      const host = cluster.host('h2');
      await worsen(host);
      const words = ['-H', 'h1:2,h2:2', program, String(SECONDS), '42'];
      const { status, stdout, stderr } = await Command.run(words, { cluster });
      await host.accept();
      await host.undelay();
      expect({ status, stderr }, stdout).toEqual({ status: 0, stderr: '' });
      expect(stdout).toMatch(/^\[0\] [1-9]\d* operations\n$/);
    },
  );
});
