/** Every collective on every type, operator, place, count and alignment, on this host, against a reference in double precision. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { writeXml } from '../../control/topology/write-xml.ts';
import { crossedGpus } from '../rig/crossed-gpus.ts';
import { buildMatrix, runMatrix } from '../rig/matrix.ts';
import { sampleSize } from '../rig/whole.ts';

const directory = mkdtempSync(join(tmpdir(), 'ncclrun-matrix-'));
afterAll(() => rmSync(directory, { recursive: true }));

/** Of the matrix, prime to its numbers of counts and places, where all of it was gone through with as many ranks. */
const PART = sampleSize(5, 10);

describe('exactness of all collectives', () => {
  beforeAll(buildMatrix, 900_000);

  it.each([1, 2, 3, 4, 7])('every collective is exact on %i ranks', (ranks) =>
    runMatrix(ranks, ['-n', String(ranks), '--tag-output=none'], { seed: ranks }),
  );

  // By default sizes decide; so each algorithm and protocol meets all sizes.
  it.each(['NCCL_ALGO=ring', 'NCCL_ALGO=tree', 'NCCL_ALGO=direct', 'NCCL_PROTO=ll'])(
    'every collective is exact with %s',
    (wish) => runMatrix(3, ['-n', '3', '--tag-output=none', '-x', wish], { seed: 50, part: PART }),
  );

  it.each(['ring', 'tree'])('every collective is exact with a %s of a topology file on five channels', (algorithm) => {
    const file = join(directory, 'crossed.xml');
    writeFileSync(file, writeXml(crossedGpus()));
    const wishes = [`NCCL_TOPO_FILE=${file}`, 'NCCL_MIN_NCHANNELS=5', `NCCL_ALGO=${algorithm}`];
    const words = wishes.flatMap((wish) => ['-x', wish]);
    return runMatrix(4, ['-n', '4', '--tag-output=none', ...words], { seed: 51, part: PART });
  });
});
