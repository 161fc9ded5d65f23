/** A non-blocking communicator whose peers do nothing: its calls return, and say that it is under way. How soon is a figure of bench/. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { compileWithEngine } from '../rig/compile.ts';

let directory = '';
let program = '';
beforeAll(async () => {
  directory = await mkdtemp(join(repository, 'build/test-nonblocking-'));
  program = await compileWithEngine('test/rig/programs/nonblocking.c', directory);
});
afterAll(() => rm(directory, { recursive: true }));

it('init and a collective return without the peer, and abort ends both', async () => {
  const { status, stdout, stderr } = await Command.run(['-n', '2', program, directory, '3']);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout.match(/^\[0\](?: \d+\.\d{3}){5} ?$/gm), stdout).toHaveLength(3);
});
