/** The algorithms' sources as kernels on two GPUs, driven by a plan in its final encoding. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { describeIf, gpusUnavailable } from '../rig/capability.ts';
import { buildNativeTests, nativeTests, tool } from '../rig/native-tests.ts';

const unavailable = gpusUnavailable(2);

describeIf(
  unavailable,
  'on two GPUs',
  () => {
    it('all_reduce is exact for every size and algorithm', () => {
      const directory = mkdtempSync(join(tmpdir(), 'ncclrun-gpu-'));
      try {
        buildNativeTests('two_gpus');
        const plan = join(directory, 'plan');
        expect(tool(process.execPath, 'test/gpu/two-gpu-plan.ts', plan).failed).toBeNull();
        expect(tool(join(nativeTests, 'all_reduce_two_gpus'), plan).failed).toBeNull();
      } finally {
        rmSync(directory, { recursive: true });
      }
    });
  },
  true,
);
