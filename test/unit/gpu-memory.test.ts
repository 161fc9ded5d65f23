/** What communicators take of a GPU's memory. */
import { describe, expect, test } from 'vitest';
import { gpuMemoryOf, gpuPlanOf } from '../../control/plan/gpu-memory.ts';
import type { PlannedGpuMemory } from '../../control/plan/gpu-memory.ts';
import { PlanError, validatePlan } from '../../control/plan/validate.ts';
import type { CommPlan } from '../../control/plan/types.ts';
import { budgetOf } from '../../control/planner/device/gpu-buffers.ts';
import { Planner } from '../../control/planner/planner.ts';
import { gpuInput, gpuPlan } from '../rig/plans.ts';

const MiB = 2 ** 20;
const COUNTS = Array.from({ length: 16 }, (_, index) => index + 1);

function planAfter(communicators: number, ranks: number, planner = new Planner(null)): CommPlan {
  const input = gpuInput(ranks);
  // One rank's program has more of them than the others'.
  const peers = input.peers.map((peer, rank) => (rank === 0 ? { ...peer, communicators } : peer));
  return planner.plan({ ...input, peers }, true);
}

function memoryOf(plan: CommPlan): PlannedGpuMemory {
  const gpus = gpuPlanOf(plan);
  if (gpus === null) throw new Error('a plan for GPUs');
  return gpuMemoryOf(gpus);
}

describe('the memory of a communicator', () => {
  test('the memory stays below its budget for every number of ranks, channels and communicators', () => {
    for (const ranks of COUNTS) {
      for (const max of ['1', '4', '16', '64']) {
        for (const communicators of [0, 4]) {
          const plan = planAfter(communicators, ranks, new Planner(null, { NCCL_MAX_NCHANNELS: max }));
          validatePlan(plan);
          expect(memoryOf(plan).total).toBeLessThanOrEqual(budgetOf({ localRanks: ranks, isLater: communicators > 0 }));
        }
      }
    }
  });

  test('the memory for 4 ranks is below 100 MB, and 64 such communicators fit in 2 GB', () => {
    const all = Array.from({ length: 64 }, (_, index) => memoryOf(planAfter(index, 4)).total);
    expect(Math.max(...all)).toBeLessThan(100e6);
    expect(all.reduce((sum, bytes) => sum + bytes, 0)).toBeLessThan(2e9);
  });

  test('the planner keeps separate plans for first and later communicators', () => {
    const planner = new Planner(null);
    const [first, later] = [planAfter(0, 4, planner), planAfter(4, 4, planner)];
    expect(memoryOf(later).total).toBeLessThan(memoryOf(first).total);
    expect(planAfter(3, 4, planner).ringBuffer).toEqual(first.ringBuffer);
  });

  test('rings have large slots, and so has the pair of two ranks', () => {
    for (const ranks of COUNTS.slice(1)) {
      const { ringBuffer, pairBuffer } = gpuPlan(ranks);
      expect((ranks > 2 ? ringBuffer : pairBuffer).stepBytes).toBe(256 * 1024);
    }
    expect(memoryOf(gpuPlan(2))).toMatchObject({ rings: 0, simple: 64 * MiB });
    expect(memoryOf(gpuPlan(4)).rings).toBe(64 * MiB);
  });

  test('the parts of the memory add up to the total', () => {
    for (const ranks of COUNTS) {
      const { total, ...parts } = memoryOf(gpuPlan(ranks));
      expect(Object.values(parts).reduce((sum, bytes) => sum + bytes, 0)).toBe(total);
    }
  });
});

test('validatePlan rejects slots that the kernels cannot count with', () => {
  const plan = gpuPlan(4);
  const { gpuBuffers } = plan;
  if (gpuBuffers === null) throw new Error('a plan for GPUs');
  const wrong = (change: Partial<CommPlan>): (() => void) => {
    return () => validatePlan({ ...plan, ...change });
  };
  expect(wrong({ gpuBuffers: null })).toThrow(new PlanError('gpuBuffers: is missing; a plan for GPUs needs it'));
  expect(wrong({ ringBuffer: { steps: 3, stepBytes: 1024 } })).toThrow(/ringBuffer.steps: 3 is no power of two/);
  expect(wrong({ gpuBuffers: { ...gpuBuffers, lineSteps: 2 } })).toThrow(/lineSteps/);
  expect(wrong({ gpuBuffers: { ...gpuBuffers, wideChannels: 65 } })).toThrow(/wideChannels/);
  expect(wrong({ gpuBuffers: { ...gpuBuffers, llStepBytes: 192 } })).toThrow(/192 is no multiple of 128/);
});
