/** Every collective on every type, operator, place, count and alignment, on this host, against a reference in double precision. */
import { beforeAll, describe, it } from 'vitest';
import { buildMatrix, runMatrix } from '../rig/matrix.ts';

describe('all collectives are exact', () => {
  beforeAll(buildMatrix, 900_000);

  it.each([1, 2, 3, 4, 7])('on %i ranks', (ranks) =>
    runMatrix(ranks, ['-n', String(ranks), '--tag-output=none'], { seed: ranks }),
  );

  // By default sizes decide; so each algorithm and protocol meets all sizes.
  it.each(['NCCL_ALGO=ring', 'NCCL_ALGO=tree', 'NCCL_ALGO=direct', 'NCCL_PROTO=ll'])('with %s', (wish) =>
    runMatrix(3, ['-n', '3', '--tag-output=none', '-x', wish], { seed: 50 }),
  );
});
