/** kill -9 of a rank in every state of its communicator, on one host. */
import { mkdtemp, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, it } from 'vitest';
import { repository } from '../rig/cluster.ts';
import { compileWithEngine } from '../rig/compile.ts';
import { dyingStates, losePeer } from '../rig/lose-peer.ts';

let directory = '';
let program = '';
beforeAll(async () => {
  directory = await mkdtemp(join(repository, 'build/test-lose-peer-'));
  program = await compileWithEngine('test/rig/programs/lose-peer.c', directory);
});
afterAll(() => rm(directory, { recursive: true }));

it.each(dyingStates)('the survivors learn who died and form a new communicator (%s)', (state) =>
  losePeer(program, state, ['-n', '3'], `(?:localhost|${hostname()})`, null),
);
