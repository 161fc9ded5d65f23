import { describe, expect, it, test } from 'vitest';
import { steadyClock } from '../../control/clock.ts';
import type { FreeGpuMemory } from '../../control/messages/gpu.ts';
import { GpuMemoryCheck, memorySentence } from '../../launcher/job/gpu-memory.ts';
import { memoryIsBack } from '../../worker/agent/memory-wait.ts';

const GIB = 2 ** 30;
const bob = { pid: 4711, program: 'python', user: 'bob', used: 100 * GIB };
const gpu = (index: number, free: number, holders: FreeGpuMemory['holders'] = [], total = 140): FreeGpuMemory => ({
  gpu: index,
  total: total * GIB,
  free: free * GIB,
  holders,
});

describe('free memory', () => {
  const fine = [gpu(0, 139.2), gpu(1, 138.6)];
  const taken = [gpu(0, 139), gpu(3, 20.2, [bob])];
  test.each<[string, Record<string, readonly FreeGpuMemory[]>, string | null]>([
    ['that is sufficient everywhere', { a: fine, b: [gpu(0, 130)], c: [] }, null],
    ['of small GPUs that drive a screen', { a: [gpu(0, 6.2, [], 8)] }, null],
    [
      'of one GPU',
      { n1: fine, n2: fine, n3: fine, node7: taken, none: [] },
      'hosts differ in free GPU memory: n[1-3]: 139 of 140 GiB; node7: 20 of 140 GiB on GPU 3 (held by pid 4711 python, user bob)',
    ],
    [
      'of one host alone',
      { localhost: taken },
      'GPUs lack free memory: localhost: 20 of 140 GiB on GPU 3 (held by pid 4711 python, user bob)',
    ],
    [
      'of several GPUs, by many, or by nobody who is named',
      {
        a: [2, 3, 5].map((index) =>
          gpu(
            index,
            5.04,
            [1, 2, 3].map((pid) => ({ ...bob, pid, program: null, user: null })),
          ),
        ),
        b: [gpu(0, 1)],
      },
      'GPUs lack free memory: a: 5 of 140 GiB on GPUs 2-3,5 (held by pid 1; pid 2 and 1 more); b: 1 of 140 GiB on GPU 0 (held by no process that the driver names)',
    ],
    [
      'of many hosts',
      Object.fromEntries([1, 2, 3, 4, 5, 6].map((number) => [`x${number}`, taken])),
      `GPUs lack free memory: ${[1, 2, 3, 4].map((number) => `x${number}: 20 of 140 GiB on GPU 3 (held by pid 4711 python, user bob)`).join('; ')}; 2 more hosts likewise`,
    ],
  ])('memorySentence describes free memory %s', (_name, said, sentence) => {
    expect(memorySentence(new Map(Object.entries(said)))).toBe(sentence);
  });

  it('the check reports once, after all hosts have answered', () => {
    const reported: string[] = [];
    const check = new GpuMemoryCheck({ clock: steadyClock, report: (sentence) => reported.push(sentence) });
    check.receive('b', taken);
    check.expect(['a', 'b', 'c']);
    check.receive('c', fine);
    expect(reported).toEqual([]);
    check.receive('a', fine);
    expect(reported).toEqual([expect.stringContaining(': a, c: 139 of 140 GiB; b: 20 of 140 GiB on GPU 3')]);
    check.receive('b', taken);
    expect(reported).toHaveLength(1);
  });
});

describe('the wait for memory of ended ranks', () => {
  const before = [gpu(0, 139), gpu(3, 139)];
  const wait = async (answers: readonly (readonly FreeGpuMemory[])[], limitMs: number): Promise<[number, string[]]> => {
    const reported: string[] = [];
    let asked = 0;
    await memoryIsBack({
      before: Promise.resolve(before),
      now: () => Promise.resolve(answers[Math.min(asked++, answers.length - 1)] ?? []),
      isWanted: () => asked < 3,
      report: (message) => reported.push(message),
      limitMs,
    });
    return [asked, reported];
  };
  const left = [gpu(0, 139), gpu(3, 20, [bob])];

  it('the wait lasts until the memory is free', async () => {
    expect(await wait([left, [gpu(0, 139), gpu(3, 137)]], 60_000)).toEqual([2, []]);
  });

  it('the wait ends at once if the memory is free or NVML reports nothing', async () => {
    expect(await wait([before], 60_000)).toEqual([1, []]);
    expect(await wait([[]], 60_000)).toEqual([1, []]);
  });

  it('the wait ends when the job no longer needs the memory', async () => {
    expect(await wait([left], 60_000)).toEqual([3, []]);
  });

  it.each<[string, (readonly FreeGpuMemory[])[], string]>([
    ['the process that holds the memory', [left], 'GPU 3 has 20 of 140 GiB free (held by pid 4711 python, user bob)'],
    ['that NVML does not answer', [], 'NVML has not reported the free memory'],
  ])('the wait ends at the limit and reports %s', async (_name, answers, what) => {
    const reported: string[] = [];
    let asked = 0;
    await memoryIsBack({
      before: Promise.resolve(before),
      now: () =>
        answers.length > 0 ? Promise.resolve(answers[asked++ % answers.length] ?? []) : new Promise(() => {}),
      isWanted: () => true,
      report: (message) => reported.push(message),
      limitMs: 10,
    });
    expect(reported).toEqual([`the ranks start although ${what}, 0.01 s after those before had ended`]);
  });
});
