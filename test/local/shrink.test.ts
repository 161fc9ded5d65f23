/** ncclCommShrink and ncclCommRevoke, from C, on one host: with all ranks alive, and after one was killed. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { compileWithEngine } from '../rig/compile.ts';
import { shrinkingStates, shrinkWithDead, shrinkWithoutDead } from '../rig/shrink.ts';

let directory = '';
let alive = '';
let dead = '';
beforeAll(async () => {
  directory = await mkdtemp(join(repository, 'build/test-shrink-'));
  alive = await compileWithEngine('test/rig/programs/shrink.c', directory);
  dead = await compileWithEngine('test/rig/programs/shrink-dead.c', directory);
});
afterAll(() => rm(directory, { recursive: true }));

it.each(['3', '5'])('the shrink program succeeds on %s living ranks', async (ranks) => {
  const { status, stdout, stderr } = await Command.run(['-n', ranks, alive]);
  expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: expect.stringMatching(/ok\n$/), stderr: '' });
});

it.each(shrinkingStates)('the survivors shrink after kill -9 of a rank (state %s)', (state) =>
  shrinkWithoutDead(dead, state, ['-n', '4'], state === 'part' ? 2 : 3, null),
);

it('a shrink that needs a dead rank fails and names the rank', () => shrinkWithDead(dead, ['-n', '4'], 2, null));
