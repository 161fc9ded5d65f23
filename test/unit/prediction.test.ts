import { describe, expect, test } from 'vitest';
import type { CollectiveName, CommPlan } from '../../control/plan/types.ts';
import { gpuInput, planCommunicator } from '../rig/plans.ts';

/** Microseconds of an operation under the first variant of its row. */
function predicted({ tuning }: CommPlan, collective: CollectiveName, bytes: number): number {
  const row = tuning.find((one) => one.collective === collective && (one.upToBytes ?? Infinity) >= bytes);
  const variant = row?.variants[0];
  if (variant === undefined) throw new Error(`no variant for ${collective} of ${bytes} bytes`);
  return variant.predictedMicroseconds + (variant.predictedMicrosecondsPerMebibyte * bytes) / 2 ** 20;
}

const KiB = 2 ** 10;
const MiB = 2 ** 20;

describe('predicted times', () => {
  const gpus = planCommunicator(gpuInput(2));
  // Two H200, in a graph.
  test.each([
    ['allReduce', 8, 4.2],
    ['allReduce', 64 * KiB, 6.7],
    ['allReduce', MiB, 10.4],
    ['allReduce', 64 * MiB, 232],
    ['allReduce', 1024 * MiB, 3182],
    ['allGather', MiB, 6.9],
    ['allGather', 64 * MiB, 128.7],
    ['reduceScatter', 256 * MiB, 424],
    ['broadcast', 8 * KiB, 3.4],
    ['broadcast', 256 * MiB, 768],
    ['sendRecv', 16 * MiB, 66],
    ['allToAll', 256 * MiB, 466.9],
    ['barrier', 0, 2.4],
  ] as const)('GPUs take about as predicted: %s of %d bytes in %d µs', (collective, bytes, measured) => {
    const ratio = predicted(gpus, collective, bytes) / measured;
    expect(ratio).toBeGreaterThan(0.5);
    expect(ratio).toBeLessThan(2);
  });

  const host = { ...gpuInput(2), peers: gpuInput(2).peers.map((peer) => ({ ...peer, device: 'host' as const })) };
  test.each([
    ['allReduce', 64, 0.45],
    ['allReduce', 64 * KiB, 5.9],
    ['allReduce', MiB, 78.9],
    ['allReduce', 64 * MiB, 4880],
  ] as const)('host ranks take about as predicted: %s of %d bytes in %d µs', (collective, bytes, measured) => {
    const ratio = predicted(planCommunicator(host), collective, bytes) / measured;
    expect(ratio).toBeGreaterThan(0.5);
    expect(ratio).toBeLessThan(2);
  });

  test('predicted times grow with the number of bytes', () => {
    for (const collective of ['allReduce', 'allGather', 'broadcast', 'reduce', 'allToAll'] as const) {
      for (const ranks of [2, 4, 8]) {
        const plan = planCommunicator(gpuInput(ranks));
        const times = [8, 4 * KiB, MiB, 64 * MiB, 1024 * MiB].map((bytes) => predicted(plan, collective, bytes));
        expect(times).toEqual(times.toSorted((one, other) => one - other));
      }
    }
  });

  test('an operation between hosts is predicted to take longer than inside one', () => {
    const { hosts, peers } = host;
    const apart = { ...host, hosts: [...hosts, ...hosts], peers: peers.map((peer, i) => ({ ...peer, host: i })) };
    expect(predicted(planCommunicator(apart), 'allReduce', MiB)).toBeGreaterThan(
      3 * predicted(planCommunicator(host), 'allReduce', MiB),
    );
  });
});
