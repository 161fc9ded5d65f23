/**
 * Writes the HostPlan that all_reduce_two_gpus runs: `two-gpu-plan.ts FILE`. Two ranks on one host; other algorithms, channels and chunks
 * by size, a chunk larger than a slot among them.
 */
import { writeFileSync } from 'node:fs';
import { encodeHostPlan } from '../../control/plan/encode.ts';
import type { AlgorithmName, CommPlan, TuningRow } from '../../control/plan/types.ts';

const CHANNELS = 24;

const plan: CommPlan = {
  formatVersion: 1,
  peers: [
    { host: 0, listenPort: 0 },
    { host: 0, listenPort: 0 },
  ],
  hosts: [{ name: 'localhost', address: '127.0.0.1' }],
  channels: Array.from({ length: CHANNELS }, (_, channel) => ({ ring: channel % 2 === 0 ? [0, 1] : [1, 0] })),
  transports: { sameHost: 'shm', otherHost: 'socket' },
  ringBuffer: { steps: 4, stepBytes: 512 * 1024 },
  pairBuffer: { steps: 4, stepBytes: 512 * 1024 },
  tuning: [
    row(32 * 1024, 'directOneShot', 1, 64 * 1024, 512),
    row(1024 * 1024, 'directTwoShot', 8, 100_004, 256),
    row(8 * 1024 * 1024, 'ring', 16, 128 * 1024, 512),
    row(null, 'ring', CHANNELS, 1024 * 1024, 512),
  ],
  spinNanoseconds: 0,
  token: '00'.repeat(16),
};

function row(
  upToBytes: number | null,
  algorithm: AlgorithmName,
  channels: number,
  chunkBytes: number,
  threads: number,
): TuningRow {
  const form = {
    algorithm,
    protocol: 'simple',
    channels,
    chunkBytes,
    threads,
    requires: [],
    predictedMicroseconds: 0,
  } as const;
  return { collective: 'allReduce', upToBytes, forms: [form] };
}

const [file] = process.argv.slice(2);
if (file === undefined) throw new Error('usage: two-gpu-plan.ts FILE');
writeFileSync(file, encodeHostPlan(plan, 0));
