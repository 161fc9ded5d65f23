/** Ranks whose calls differ are told so, all of them, with who called what. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { compileWithEngine } from '../rig/compile.ts';

let directory = '';
let program = '';
beforeAll(async () => {
  directory = await mkdtemp(join(repository, 'build/test-mismatch-'));
  program = await compileWithEngine('test/rig/programs/mismatch.c', directory);
});
afterAll(() => rm(directory, { recursive: true }));

const usual = String.raw`allReduce of 4000 bytes of int32 with sum`;

it.each([
  ['type', usual, 'allReduce of 4000 bytes of float32 with sum'],
  ['operator', usual, 'allReduce of 4000 bytes of int32 with max'],
  ['count', usual, 'allReduce of 8000 bytes of int32 with sum'],
  ['kind', usual, 'broadcast of 4000 bytes of int32, root 0'],
  ['root', 'broadcast of 4000 bytes of int32, root 0', 'broadcast of 4000 bytes of int32, root 1'],
  ['order', 'broadcast of 4000 bytes of int32, root 0', usual],
])('%s', async (what, theirs, odd) => {
  const { stdout, stderr } = await Command.run(['-n', '3', program, what]);
  const told = stdout.split('\n').filter((line) => line !== '');
  expect(told, stderr).toHaveLength(3);
  for (const line of told) {
    // At once by what arrives where something else is expected, else by the rolling hash.
    expect(line).toMatch(/^\[\d\] 5: /);
    expect(line).toMatch(
      /where this rank expects|differ (?:from|at or before) the communicator’s collective number \d+: rank \d \(/,
    );
  }
  const whole = told.find((line) => line.includes('collective number 3:'));
  if (whole !== undefined) expect([whole.includes(theirs), whole.includes(odd)]).toEqual([true, true]);
});
