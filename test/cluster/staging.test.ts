/** Hosts without ncclrun get it over the connection, once, and whole or not at all. */
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, type ClusterHost } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';

/** A host without ncclrun and with a cache of its own; the cache's path. */
async function bare(cluster: Cluster, host: ClusterHost): Promise<string> {
  const cache = join(cluster.state, host.name, 'cache');
  await mkdir(cache);
  await host.hideInstallation();
  await host.useCache(cache);
  return cache;
}

const entries = async (cache: string): Promise<string[]> => (await readdir(join(cache, 'ncclrun'))).toSorted();

describeIf(clusterUnavailable(), 'staging', () => {
  it('copies ncclrun to a host that lacks it, once', async () => {
    await using cluster = await Cluster.start(1);
    const cache = await bare(cluster, cluster.host('h1'));
    const first = await Command.run(['-H', 'h1:2', '--tag-output=none', 'hostname'], { cluster });
    expect(first).toMatchObject({ status: 0, stdout: 'h1\nh1\n' });
    const kept = await entries(cache);
    expect(kept).toHaveLength(1);
    expect(kept[0]).toMatch(/^0\.1\.0-[0-9a-f]{12}-node/);
  });
});
