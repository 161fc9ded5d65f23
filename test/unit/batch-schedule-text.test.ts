/** Why a task of a batch waits, in words. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Demand } from '../../launcher/batch/model/spec.ts';
import { TaskQueue } from '../../launcher/batch/schedule/queue.ts';
import { whyText } from '../../launcher/batch/schedule/why-text.ts';
import { demandOf, hostsOf, queueOf, taskOf } from '../rig/batch/workload.ts';

const NOON = Date.UTC(2026, 10, 29, 12);
const GIBIBYTE = 1024 ** 3;

beforeAll(() => vi.stubEnv('TZ', 'UTC'));
afterAll(() => vi.unstubAllEnvs());

function whyOf(queue: TaskQueue, id: string, now = NOON): string {
  queue.next(now);
  return whyText(queue.why(id, now), now);
}

describe('a demand that never fits', () => {
  const hosts = hostsOf([8, 4, 8], { cpus: 64, memoryBytes: 256 * GIBIBYTE });

  it.each<[Partial<Demand>, string | null]>([
    [{ ranks: 20 }, null],
    [{ ranks: 21 }, 'wants 21 slots; the 3 hosts have 20'],
    [{ ranks: 17, nodes: 2 }, 'wants 17 slots on 2 hosts; the largest 2 have 16'],
    [{ ranks: 9, nodes: 1 }, 'wants 9 slots on 1 host; the largest has 8'],
    [{ ranks: 9, hosts: ['node1'] }, 'wants 9 slots; the only host has 8'],
    [{ ranks: 24, ranksPerNode: 8 }, 'wants 8 slots on each of 3 hosts; 2 hosts have so many'],
    [{ ranks: 9, ranksPerNode: 9 }, 'wants 9 slots on one host; no host has so many'],
    [{ ranks: 4, nodes: 4 }, 'wants 4 hosts; 3 of those it allows are there'],
    [{ ranks: 2, nodes: 2, hosts: ['node2', 'node9'] }, 'wants 2 hosts; 1 of those it allows is there'],
    [{ ranks: 3, ranksPerNode: 2 }, 'wants 3 ranks on any number of hosts with 2 on each, which does not add up'],
    [{ ranks: 1, nodes: 2 }, 'wants 1 rank on 2 hosts, which does not add up'],
    [{ ranks: 4, cpusPerRank: 50 }, 'wants 200 processors; the 3 hosts have 150'],
    [{ ranks: 2, cpusPerRank: 33, ranksPerNode: 2 }, 'wants 66 processors on one host; no host has so many'],
    [{ memoryBytes: 300 * GIBIBYTE }, 'wants 300 GiB of memory on one host; no host has so much'],
    [{ ranks: 3, nodes: 3, takesSlots: false, memoryBytes: 1.5 * GIBIBYTE, exclude: [] }, null],
  ])('%j lacks %j', (demand, expected) => {
    expect(new TaskQueue(hosts).neverFits({ demand: demandOf(demand) })).toBe(expected);
  });

  it('a waiting task says it too', () => {
    const queue = queueOf(hostsOf([8]), [taskOf('large', { ranks: 16 })]);
    expect(whyText(queue.why('large', NOON), NOON)).toBe('never fits: wants 16 slots; the only host has 8');
  });
});

describe('a task that waits', () => {
  const hour = { timeLimitSeconds: 2 * 3600 + 300 };

  it('the first says when it starts at the latest', () => {
    const queue = queueOf(hostsOf([8, 8]), [taskOf('long', { ranks: 14 }, hour), taskOf('train', { ranks: 8 })]);
    expect(whyOf(queue, 'train')).toBe('wants 8 slots; 2 of 16 slots are free; can start at 14:05 at the latest');
  });

  it('a time of another day has its date', () => {
    const long = taskOf('long', { ranks: 16 }, { timeLimitSeconds: 14 * 3600 });
    const queue = queueOf(hostsOf([8, 8]), [long, taskOf('train', { ranks: 16, nodes: 2 })]);
    expect(whyOf(queue, 'train')).toBe(
      'wants 16 slots on 2 hosts; the largest 2 have 0 free; can start at 2026-11-30 02:00 at the latest',
    );
  });

  it('a task beyond its time limit may end at any moment', () => {
    const queue = queueOf(hostsOf([1]), [taskOf('long', {}, { timeLimitSeconds: 60 }), taskOf('next')]);
    queue.next(NOON);
    expect(whyOf(queue, 'next', NOON + 61_000)).toBe('wants 1 slot; 0 of 1 slots are free; can start at any moment');
  });

  it('tasks without a time limit that are in the way have their names said', () => {
    const endless = { timeLimitSeconds: null };
    const first = queueOf(hostsOf([1, 1]), [taskOf('a', {}, endless), taskOf('b', { hosts: ['node1'] })]);
    expect(whyOf(first, 'b')).toBe(
      'wants 1 slot; 0 of 1 slots are free; cannot say when it starts: a has no time limit',
    );
    const names = ['a', 'b', 'c', 'd', 'e'].map((id) => taskOf(id, {}, endless));
    expect(whyOf(queueOf(hostsOf([4]), names), 'e')).toBe(
      'wants 1 slot; 0 of 4 slots are free; cannot say when it starts: a, b, c and 1 more have no time limit',
    );
  });

  it('a task that would delay the first one says behind whom it is, and which time limit would do', () => {
    const tasks = [
      taskOf('long', { ranks: 4 }, hour),
      taskOf('train', { ranks: 8 }),
      taskOf('eval', {}, { timeLimitSeconds: null }),
    ];
    expect(whyOf(queueOf(hostsOf([4, 4]), tasks), 'eval')).toBe(
      'behind train, which has the reservation for 14:05; with a time limit of 2 h 5 min it could start now',
    );
    const endless = [
      taskOf('long', { ranks: 4 }, { timeLimitSeconds: null }),
      taskOf('train', { ranks: 8 }),
      taskOf('eval', {}, { timeLimitSeconds: null }),
    ];
    expect(whyOf(queueOf(hostsOf([4, 4]), endless), 'eval')).toBe('behind train, which has the reservation');
  });

  it('others say what is free', () => {
    const tasks = [
      taskOf('long', { ranks: 7 }),
      taskOf('one', { ranks: 2 }),
      taskOf('two', { ranks: 4, exclusive: true }),
    ];
    expect(whyOf(queueOf(hostsOf([8]), tasks), 'two')).toBe('wants 1 host for itself; 0 are idle');
    const cpus = new TaskQueue(hostsOf([8, 8], { cpus: 8 }));
    const demand = { ranks: 2, nodes: 2, cpusPerRank: 5 };
    for (const id of ['a', 'b', 'c']) cpus.add(taskOf(id, demand));
    expect(whyOf(cpus, 'c')).toBe('wants 10 processors on 2 hosts; the largest 2 have 0 free');
  });

  it('hosts that are held out are said with their time', () => {
    const queue = queueOf(hostsOf([1, 1, 1]), [
      taskOf('wide', { ranks: 2, nodes: 2, hosts: ['node1', 'node2'] }),
      taskOf('one', { hosts: ['node3'] }),
    ]);
    queue.holdHost('node1', NOON + 15 * 60_000);
    expect(whyOf(queue, 'wide')).toBe('host node1 is quarantined until 12:15');
    queue.holdHost('node2', Infinity);
    expect(whyOf(queue, 'wide')).toBe('hosts node[1-2] are quarantined until somebody releases them');
  });

  it('a task that has just been added starts next if it fits', () => {
    expect(whyText(queueOf(hostsOf([1]), [taskOf('one')]).why('one', NOON), NOON)).toBe('starts next');
  });
});
