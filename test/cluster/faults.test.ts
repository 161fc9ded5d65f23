/** The fault campaign in short: every kind once, always with the same draws. npm run test:faults plays hundreds. */
import { expect, it } from 'vitest';
import { playAll } from '../faults/campaign.ts';
import { kinds } from '../faults/kinds.ts';
import { draw } from '../faults/draw.ts';
import { PATIENCE_MS } from '../faults/round.ts';
import { failureText } from '../faults/table.ts';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';

const SEED = 1;
/** Here nobody holds a job to the time that it takes to end; the campaign does. */
const PACE = { jobs: 4, endMs: PATIENCE_MS };

describeIf(clusterUnavailable(), 'a job that is struck by a fault', () => {
  it('ends as it should, and leaves nothing', { timeout: 300_000 }, async () => {
    const draws = kinds.map((kind, index) => draw(SEED + index, [kind]));
    const results = await playAll(draws, PACE, () => {});
    expect(results.filter(({ wrongs }) => wrongs.length > 0).map(failureText)).toEqual([]);
    expect(results).toHaveLength(kinds.length);
  });
});
