/** Ranks whose calls differ are told so, all of them, with who called what. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { repository } from '../rig/cluster.ts';
import { compileWithEngine } from '../rig/compile.ts';
import { mismatches, runFinalize, runMismatch } from '../rig/mismatch.ts';

let directory = '';
let program = '';
beforeAll(async () => {
  directory = await mkdtemp(join(repository, 'build/test-mismatch-'));
  program = await compileWithEngine('test/rig/programs/mismatch.c', directory);
});
afterAll(() => rm(directory, { recursive: true }));

it.each(mismatches)('every rank names the rank whose call differs (%s)', async (...mismatch) => {
  await runMismatch(program, mismatch, ['-n', '3'], null);
});

it.each(['split', 'sum'] as const)('a pending %s names the rank that called ncclCommFinalize', async (what) => {
  const finalizer = await compileWithEngine('test/rig/programs/finalize.c', directory);
  for (const line of await runFinalize(finalizer, what, ['-n', '3'], null))
    expect(line).toMatch(
      what === 'split'
        ? /\] 5: .*: rank 2 \(\S+, pid \d+\) called ncclCommFinalize where others called ncclCommSplit/
        : /\] 5: the ranks’ calls differ: rank [01] on host \S+ called allReduce of 1 int32 with sum, which rank 2 on host \S+ did not before ncclCommFinalize/,
    );
});
