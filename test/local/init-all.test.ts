/** Several ranks in one process, from C. */
import { spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { compileWithEngine } from '../rig/compile.ts';

let directory = '';
let program = '';
beforeAll(async () => {
  directory = await mkdtemp(join(repository, 'build/test-init-all-'));
  program = await compileWithEngine('test/rig/programs/init-all.c', directory);
});
afterAll(() => rm(directory, { recursive: true }));

it.each(['1', '2'])('ncclCommInitAll and one thread per rank work in %s processes of a job', async (processes) => {
  const { status, stdout, stderr } = await Command.run(['-n', processes, program]);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout.match(/ok\n/g)).toHaveLength(Number(processes));
});

it('ncclCommInitAll works outside a job with a private agent', () => {
  const { status, stdout, stderr } = spawnSync(program, { encoding: 'utf8' });
  expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: expect.stringMatching(/ok\n/), stderr: '' });
});
