/** Every collective on every type, operator, place, count and alignment, between hosts, against a reference in double precision. */
import { afterAll, beforeAll, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster } from '../rig/cluster.ts';
import { buildMatrix, runMatrix } from '../rig/matrix.ts';
import { sampleSize } from '../rig/whole.ts';

describeIf(clusterUnavailable(), 'all collectives are exact', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    buildMatrix();
    cluster = await Cluster.start(2);
  }, 900_000);
  afterAll(() => cluster[Symbol.asyncDispose]());

  it.each(['h1:1,h2:1', 'h1:3,h2:1', 'h1:4,h2:3'])('collectives on %s give exact results', (hosts) => {
    const ranks = hosts.match(/:\d/g)?.reduce((sum, slots) => sum + Number(slots.slice(1)), 0) ?? 0;
    return runMatrix(ranks, ['-H', hosts, '--tag-output=none'], { cluster, seed: 100 + ranks, part: sampleSize(1, 3) });
  });

  it.each([
    ['with trees', ['-x', 'NCCL_ALGO=tree']],
    ['with protocol LL', ['-x', 'NCCL_PROTO=ll']],
    ['with rings of protocol LL', ['-x', 'NCCL_PROTO=ll', '-x', 'NCCL_ALGO=ring']],
  ])('collectives %s give exact results', (_, wish) =>
    runMatrix(3, ['-H', 'h1:2,h2:1', '--tag-output=none', ...wish], { cluster, seed: 60, part: sampleSize(5, 10) }),
  );
});
