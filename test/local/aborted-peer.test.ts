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

it.each(abortedStates)('%s: those who need the rank that aborted are told, the others see nothing', async (state) => {
  await abortPeer(program, state, ['-n', '3'], null);
});

it('a rank that fails because it needed one that aborted is not to blame', async () => {
  await failForAborted(program, ['-n', '3'], null);
});
