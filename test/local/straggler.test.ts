/** A rank that regularly computes longer than the others is named; ranks that do not are not. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeIf } from '../rig/capability.ts';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { compileLibrary, compileWithEngine } from '../rig/compile.ts';
import { FakeMachine, machineUnavailable } from '../rig/machine.ts';
import { parseResult } from '../rig/result.ts';

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

describeIf(machineUnavailable(), 'a slow rank with a GPU', () => {
  it('the verdict says that its GPU is throttled, and what its clock is', async () => {
    await using machine = await FakeMachine.make([[0], [1]], [0, 1]);
    const health = join(directory, 'health');
    await writeFile(health, '1980 1980 0 0 0 16 16\n1200 1980 0x40 0 0 8 16\n');
    const environment = {
      NCCLRUN_LIBNVIDIA_ML: await compileLibrary(directory, 'stand-in-nvml'),
      NCCLRUN_STAND_IN_HEALTH: health,
    };
    // Only the ranks know that they compute on the host device: ncclrun gives each a GPU.
    const words = ['--straggler-window', '2', 'env', 'NCCLRUN_DEVICE=host', program, '400', '2', '1', '1000'];
    const { stdout, stderr } = await machine.run(['--json', '-n', '2', ...words], { environment });
    const about = { host: 'localhost', subject: 'GPU 1' };
    expect(parseResult(stdout).verdicts, stderr).toMatchObject([
      {
        kind: 'straggler-compute',
        blamed: [{ ranks: '1' }],
        evidence: [
          { kind: 'lateness' },
          { kind: 'throttle-reason', ...about, value: 'thermal slowdown by hardware' },
          { kind: 'gpu-clock', ...about, value: 1200, unit: 'MHz' },
          { kind: 'usual-gpu-clock', ...about, value: 1980 },
          { kind: 'pcie-width', ...about, value: 8, unit: 'of 16 lanes' },
        ],
      },
    ]);
  });
});
