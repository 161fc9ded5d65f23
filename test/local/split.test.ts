/** ncclCommSplit, from C, on one host. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { compileWithEngine } from '../rig/compile.ts';

let directory = '';
let program = '';
beforeAll(async () => {
  directory = await mkdtemp(join(repository, 'build/test-split-'));
  program = await compileWithEngine('test/rig/programs/split.c', directory);
});
afterAll(() => rm(directory, { recursive: true }));

it.each(['1', '2', '5'])('ncclCommSplit divides %s ranks into the right parts', async (ranks) => {
  const { status, stdout, stderr } = await Command.run(['-n', ranks, program]);
  expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: expect.stringMatching(/ok\n$/), stderr: '' });
});
