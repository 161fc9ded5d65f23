/** The fault campaign in short: every kind once, always with the same draws. npm run test:faults plays hundreds. */
import { mkdtemp, rm } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { playAll } from '../faults/campaign.ts';
import { kinds } from '../faults/kinds.ts';
import { draw } from '../faults/draw.ts';
import { plantedFaults } from '../faults/planted.ts';
import { TIMEOUT_MS } from '../faults/round.ts';
import { failureText } from '../faults/table.ts';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { compile } from '../rig/compile.ts';

const SEED = 1;
/** Here nobody holds a job to the time that it takes to end; the campaign does. */
const SHORT_MS = 6000;
const PACE = { jobs: 2, endMs: TIMEOUT_MS };

describeIf(clusterUnavailable(), 'the fault campaign', () => {
  it('every kind of fault ends its job as expected and leaves nothing behind', { timeout: 900_000 }, async () => {
    const draws = kinds.map((kind, index) => draw(SEED + index, [kind]));
    const results = await playAll(draws, PACE, () => {});
    expect(results.filter(({ wrongs }) => wrongs.length > 0).map(failureText)).toEqual([]);
    expect(results).toHaveLength(kinds.length);
  });

  it('the campaign detects every planted fault', { timeout: 300_000 }, async () => {
    const directory = await mkdtemp('/var/tmp/ncclrun-planted-');
    try {
      const planted = plantedFaults(await compile('test/rig/programs/planted.c', directory));
      const draws = planted.map(({ kind }, index) => draw(SEED + index, [kind]));
      const results = await playAll(draws, { ...PACE, endMs: SHORT_MS }, () => {});
      const seen = planted.map(({ kind, error }) => {
        const found = results.find((result) => result.draw.kind === kind);
        return {
          name: kind.name,
          complains: (found?.wrongs ?? []).some((wrong) => error.test(wrong)),
          wrongs: found?.wrongs,
        };
      });
      expect(seen.filter(({ complains }) => !complains)).toEqual([]);
    } finally {
      await rm(directory, { recursive: true });
    }
  });
});
