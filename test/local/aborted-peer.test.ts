/** ncclCommAbort of a rank concerns only those that wait for it, now or later. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, it } from 'vitest';
import { abortedStates, abortPeer, failForAborted } from '../rig/aborted-peer.ts';
import { repository } from '../rig/cluster.ts';
import { compileWithEngine } from '../rig/compile.ts';

let directory = '';
let program = '';
beforeAll(async () => {
  directory = await mkdtemp(join(repository, 'build/test-aborted-'));
  program = await compileWithEngine('test/rig/programs/aborted-peer.c', directory);
});
afterAll(() => rm(directory, { recursive: true }));

it.each(abortedStates)('only ranks that need the aborting rank fail (%s)', async (state) => {
  await abortPeer(program, state, ['-n', '3'], null);
});

it('the verdict blames the rank that aborted and not the rank that failed because of it', async () => {
  await failForAborted(program, ['-n', '3'], null);
});
