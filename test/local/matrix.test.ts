/** Every collective on every type, operator, place, count and alignment, on this host, against a reference in double precision. */
import { beforeAll, describe, it } from 'vitest';
import { buildMatrix, runMatrix } from '../rig/matrix.ts';

describe('all collectives are exact', () => {
  beforeAll(buildMatrix, 900_000);

  it.each([1, 2, 3, 4, 7])('on %i ranks', (ranks) =>
    runMatrix(ranks, ['-n', String(ranks), '--tag-output=none'], { seed: ranks }),
  );
});
