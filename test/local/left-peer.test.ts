/** A rank that waits for one that left in order, or sends to it, is told. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, it } from 'vitest';
import { repository } from '../rig/cluster.ts';
import { compileWithEngine } from '../rig/compile.ts';
import { callLeft, callsOnLeft } from '../rig/left-peer.ts';

let directory = '';
let program = '';
beforeAll(async () => {
  directory = await mkdtemp(join(repository, 'build/test-left-'));
  program = await compileWithEngine('test/rig/programs/left-peer.c', directory);
});
afterAll(() => rm(directory, { recursive: true }));

it.each([...callsOnLeft, 'nodeBarrier'])('%s reports ncclInvalidUsage for the rank that left', async (call) => {
  await callLeft(program, call, 'before', 2, ['-n', '2'], null);
});

it.each(['receive', 'send', 'allReduce', 'broadcast', 'nodeBarrier'])(
  '%s on three ranks reports ncclInvalidUsage after one rank left',
  async (call) => callLeft(program, call, 'before', 3, ['-n', '3'], null),
);
