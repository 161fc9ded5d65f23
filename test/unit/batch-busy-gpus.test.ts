/** What a scheduler does with slots whose GPUs other jobs hold. */
import { describe, expect, it } from 'vitest';
import { resultWithoutJob } from '../../launcher/cli/refused.ts';
import { endOf } from '../../launcher/batch/attempt/ending.ts';
import { BusyGpus } from '../../launcher/batch/run/busy-gpus.ts';
import { hostsOf, queueOf, taskOf } from '../rig/batch/workload.ts';

const placement = [{ host: 'h1', ranks: 2, slots: [0, 1], cpus: 0, memoryBytes: 0, exclusive: false }];
const task = (id: string) => taskOf(id, {}, { timeLimitSeconds: null });

describe('a slot whose GPU another job holds', () => {
  it('is left alone for longer each time, until a task has started there', () => {
    const gpus = new BusyGpus();
    const busy = [{ host: 'h1', slot: 0 }];
    const waits = [1, 2, 3, 4, 5, 6, 7].map(() => gpus.afterEnd(placement, busy, 1000)[0]?.until);
    expect(waits).toEqual([31_000, 61_000, 121_000, 241_000, 481_000, 601_000, 601_000]);
    expect(gpus.afterEnd(placement, [], 1000)).toEqual([]);
    expect(gpus.afterEnd(placement, busy, 1000)).toEqual([{ host: 'h1', slot: 0, until: 31_000 }]);
  });

  it('gets no task until its time is over, and other slots do', () => {
    const queue = queueOf(hostsOf([2]), [task('a'), task('b')]);
    queue.holdSlot('node1', 0, 0, 30_000);
    const starts = (now: number) => queue.next(now).map(({ id, placement: shares }) => [id, shares[0]?.slots]);
    expect(starts(0)).toEqual([['a', [1]]]);
    expect(queue.wakeAt()).toBe(30_000);
    expect(queue.why('b', 0)).toMatchObject({ kind: 'first', startBy: 30_000 });
    expect(starts(29_999)).toEqual([]);
    expect(starts(30_000)).toEqual([['b', [0]]]);
    expect(queue.wakeAt()).toBeNull();
  });

  it('stays a task’s that has it already', () => {
    const queue = queueOf(hostsOf([1]), [task('a'), task('b')]);
    queue.next(0);
    queue.holdSlot('node1', 0, 0, 30_000);
    queue.ended('a');
    expect(queue.next(1)).toHaveLength(1);
  });
});

it('an attempt that found GPUs busy says which slots these are', () => {
  const gpu = { index: 3, slot: 1, uuid: 'GPU-3', job: '1a', pid: 7, user: 'alice' };
  const failure = { type: 'gpus-busy', host: 'h1', gpus: [gpu, { ...gpu, index: null, slot: null }] } as const;
  expect(endOf(resultWithoutJob(failure), 5)).toMatchObject({
    outcome: 'busy',
    busySlots: [{ host: 'h1', slot: 1 }],
    sentence: expect.stringMatching(/^h1: GPU 3 is held by job 1a of alice \(pid 7\); MIG instance GPU-3 is held by/u),
  });
});
