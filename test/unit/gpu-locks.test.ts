/** Which jobs get a GPU that several want: with the kernel's own names, and GPUs that nobody else knows. */
import { randomUUID } from 'node:crypto';
import { userInfo } from 'node:os';
import { describe, expect, it } from 'vitest';
import type { AgentOrder } from '../../control/messages/link.ts';
import { busyGpuText } from '../../control/busy-gpus-text.ts';
import { GpuLocks, gpuLocksOf } from '../../worker/agent/gpu-locks.ts';
import { loadNative } from '../../worker/engine/load.ts';
import type { VisibleGpu } from '../../worker/topology/gpus.ts';

const native = loadNative();
const instance = (): VisibleGpu => ({ name: `MIG-${randomUUID()}`, index: null, address: null });
const order = (jobId: string, busyGpus: AgentOrder['busyGpus'] = 'refuse', outerJob: string | null = null) => ({
  jobId,
  busyGpus,
  outerJob,
});
const locksOf = (...words: Parameters<typeof order>) => new GpuLocks(native, order(...words));
const me = { pid: process.pid, user: userInfo().username };

describe('a GPU that a job holds', () => {
  it('is busy for another one, which learns who holds it, until the first one lets go', () => {
    const gpu = instance();
    const [first, second] = [locksOf('1a'), locksOf('2b')];
    expect(first.take([gpu])).toEqual([]);
    expect(second.take([gpu])).toEqual([{ index: null, slot: null, uuid: gpu.name, job: '1a', ...me }]);
    first.release();
    expect(second.take([gpu])).toEqual([]);
    second.release();
  });

  it('is its own for other agents of the job, and for jobs that its ranks start', () => {
    const gpu = instance();
    const all = [locksOf('1a'), locksOf('1a'), locksOf('2b', 'refuse', '1a')];
    expect(all.map((locks) => locks.take([gpu]))).toEqual([[], [], []]);
    for (const locks of all) locks.release();
  });

  it('may be shared, and stays busy for a job that does not share until the last one has ended', () => {
    const gpu = instance();
    const [first, second, alone] = [locksOf('1a', 'report'), locksOf('2b', 'ignore'), locksOf('3c')];
    expect(first.take([gpu])).toEqual([]);
    expect(second.take([gpu])).toMatchObject([{ job: '1a' }]);
    first.release();
    expect(alone.take([gpu])).toMatchObject([{ job: '2b' }]);
    second.release();
    expect(alone.take([gpu])).toEqual([]);
    expect(locksOf('4d', 'report').take([gpu])).toMatchObject([{ job: '3c' }]);
    alone.release();
  });

  it('is busy, too, where its holder is no job', () => {
    const gpu = instance();
    const held = native.nameHold(`ncclrun-gpu/${gpu.name}`);
    expect(locksOf('1a').take([gpu])).toMatchObject([{ job: null, ...me }]);
    if (held !== null) native.close(held);
  });
});

describe('a job that does not share', () => {
  it('holds none of its GPUs when one of them is busy', () => {
    const [one, other] = [instance(), instance()];
    const [first, second, third] = [locksOf('1a'), locksOf('2b'), locksOf('3c')];
    first.take([one]);
    expect(second.take([other, one])).toMatchObject([{ uuid: one.name }]);
    expect(third.take([other])).toEqual([]);
    for (const locks of [first, third]) locks.release();
  });

  it('lets go of GPUs that it does not want any more', () => {
    const [one, other] = [instance(), instance()];
    const [first, second] = [locksOf('1a'), locksOf('2b')];
    first.take([one]);
    first.take([other]);
    expect(second.take([one])).toEqual([]);
    for (const locks of [first, second]) locks.release();
  });
});

it('an agent finds the locks of the one before it held, unless that was another job’s', () => {
  const gpu = instance();
  const first = gpuLocksOf(native, order('1a'));
  first.take([gpu]);
  expect(gpuLocksOf(native, order('1a'))).toBe(first);
  expect(gpuLocksOf(native, order('2b')).take([gpu])).toEqual([]);
  gpuLocksOf(native, order('2b')).release();
});

it('a GPU of which nothing is known is nobody’s', () => {
  expect(locksOf('1a').take([{ name: '0', index: 0, address: null }])).toEqual([]);
});

it('the text names GPU, job, user and process, as far as they are known', () => {
  const gpu = { index: 3, slot: 3, uuid: 'GPU-1', job: '1a', pid: 4711, user: 'alice' };
  expect(busyGpuText(gpu)).toBe('GPU 3 is held by job 1a of alice (pid 4711)');
  expect(busyGpuText({ ...gpu, index: null, job: null, pid: null, user: null })).toBe(
    'MIG instance GPU-1 is held by a process that is no job of ncclrun',
  );
});

it('a name has 1 to 107 bytes', () => {
  expect(() => native.nameHold('')).toThrow('name is not a name of 1 to 107 bytes');
  expect(() => native.nameHold('x'.repeat(108))).toThrow('name is not a name of 1 to 107 bytes');
  expect(native.nameHolder(randomUUID())).toBeNull();
});
