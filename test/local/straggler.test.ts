/** A rank that regularly computes longer than the others is named; ranks that do not are not. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { compileWithEngine } from '../rig/compile.ts';

let directory = '';
let program = '';
beforeAll(async () => {
  directory = await mkdtemp(join(repository, 'build/test-straggler-'));
  program = await compileWithEngine('test/rig/programs/straggle.c', directory);
});
afterAll(() => rm(directory, { recursive: true }));

it('the verdict names the rank that always computes much longer than the others', async () => {
  // 22 ms beside 2 ms: a loaded machine delays the others, too, and a window must hold enough operations there.
  const words = ['400', '2', '2', '1000'];
  const { verdicts, outcome } = await Command.result(['-n', '3', '--straggler-window', '2', program, ...words]);
  expect(verdicts).toMatchObject([
    {
      kind: 'straggler-compute',
      blamed: [{ ranks: '2', host: 'localhost' }],
      communicator: { size: 3 },
      evidence: [{ kind: 'lateness', unit: 'ms' }],
    },
  ]);
  expect(outcome.stderr).toMatch(/^ncclrun: rank 2 on localhost begins operations last: in \d+ of \d+, by /m);
});
