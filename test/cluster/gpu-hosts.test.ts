/** GPUs of several hosts: the stand-in's, which a network connects. */
import { afterAll, beforeAll, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster } from '../rig/cluster.ts';
import { buildMatrix, runMatrix } from '../rig/matrix.ts';
import { buildStandIn, ownKernels, standInEnvironment } from '../rig/stand-in.ts';

const variables = { ...standInEnvironment, ...ownKernels };
const exported = Object.entries(variables).flatMap(([name, value]) => ['-x', `${name}=${value}`]);

describeIf(clusterUnavailable(), 'GPUs of several hosts', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    buildMatrix();
    buildStandIn();
    cluster = await Cluster.start(3);
  }, 900_000);
  afterAll(() => cluster[Symbol.asyncDispose]());

  it.each(['h1:1,h2:1', 'h1:2,h2:1', 'h1:2,h2:2', 'h1:1,h2:1,h3:1'])(
    'collectives on GPUs of %s give exact results',
    (hosts) => {
      const ranks = hosts.match(/:\d/g)?.reduce((sum, slots) => sum + Number(slots.slice(1)), 0) ?? 0;
      return runMatrix(ranks, ['-H', hosts, '--tag-output=none', ...exported], { cluster, seed: ranks, part: 20 });
    },
  );
});
