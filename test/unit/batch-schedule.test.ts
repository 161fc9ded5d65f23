/** Where the tasks of a batch are placed, and in which order they start. */
import { describe, expect, it } from 'vitest';
import type { Placement } from '../../launcher/batch/model/capacity.ts';
import type { Demand } from '../../launcher/batch/model/spec.ts';
import { pickSlots } from '../../launcher/batch/schedule/pick-slots.ts';
import { TaskQueue } from '../../launcher/batch/schedule/queue.ts';
import { Resources } from '../../launcher/batch/schedule/resources.ts';
import type { WaitingTask } from '../../launcher/batch/schedule/task.ts';
import { demandOf, hostsOf } from '../rig/batch/workload.ts';

const HOUR = 3_600_000;

/** `node1:0-3` in the order of ranks, as text: host, then slots or, without any, the number of ranks. */
function placeText(placement: Placement | undefined): string {
  if (placement === undefined) return 'waits';
  return placement.map(({ host, slots, ranks }) => `${host}:${slots.join('') || `${ranks} ranks`}`).join(' ');
}

let order = 0;

function taskOf(id: string, said: Partial<Demand> = {}, more: Partial<WaitingTask> = {}): WaitingTask {
  order += 1;
  return { id, demand: demandOf(said), priority: 0, timeLimitSeconds: 3600, order, queuedAt: 0, ...more };
}

function queueOf(hosts: ReturnType<typeof hostsOf>, tasks: readonly WaitingTask[]): TaskQueue {
  const queue = new TaskQueue(hosts);
  for (const task of tasks) queue.add(task);
  return queue;
}

function startedIds(queue: TaskQueue, now: number): string[] {
  return queue.next(now).map(({ id }) => id);
}

/** 4 slots of node1 are taken for an hour; `head` wants all of both hosts. */
function behindHead(): TaskQueue {
  return queueOf(hostsOf([4, 4]), [taskOf('long', { ranks: 4 }), taskOf('head', { ranks: 8 })]);
}

describe('placement', () => {
  it.each<[string, readonly number[], Partial<Demand>, string]>([
    ['one host is enough', [2, 4, 4], { ranks: 4 }, 'node2:0123'],
    ['the fewest hosts are taken', [2, 2, 8], { ranks: 9 }, 'node1:01 node3:0123456'],
    ['hosts with equal room go by their order', [4, 4, 4], { ranks: 8 }, 'node1:0123 node2:0123'],
    ['ranks spread evenly over a number of hosts', [8, 8], { ranks: 6, nodes: 2 }, 'node1:012 node2:012'],
    ['a small host takes what it can', [2, 8, 8], { ranks: 9, nodes: 3 }, 'node1:01 node2:0123 node3:012'],
    ['each host gets its number of ranks', [3, 8, 4], { ranks: 8, ranksPerNode: 4 }, 'node2:0123 node3:0123'],
    ['named hosts alone are used', [8, 8, 8], { ranks: 2, hosts: ['node3', 'node2'] }, 'node2:01'],
    ['excluded hosts are not used', [8, 8, 8], { ranks: 2, exclude: ['node1'] }, 'node2:01'],
    ['ranks without slots take none', [2, 2], { ranks: 2, takesSlots: false }, 'node1:2 ranks'],
    ['a gang that does not fit whole waits', [4, 3], { ranks: 8 }, 'waits'],
  ])('%s', (_title, slots, demand, expected) => {
    const queue = queueOf(hostsOf(slots), [taskOf('one', demand)]);
    expect(placeText(queue.next(0)[0]?.placement)).toBe(expected);
  });

  it('processors and memory bound the ranks of a host', () => {
    const hosts = hostsOf([8, 8], { cpus: 16, memoryBytes: 100 });
    const demand = { ranks: 4, cpusPerRank: 6, memoryBytes: 60 };
    const queue = queueOf(hosts, [taskOf('one', demand), taskOf('two', demand), taskOf('free', { ranks: 4 })]);
    expect(queue.next(0).map(({ id, placement }) => `${id} ${placeText(placement)}`)).toEqual([
      'one node1:01 node2:01',
      'free node1:4567',
    ]);
  });

  it('an exclusive task has its hosts for itself', () => {
    const tasks = [taskOf('alone', { ranks: 2, exclusive: true }), taskOf('one'), taskOf('again', { exclusive: true })];
    const queue = queueOf(hostsOf([8, 8]), tasks);
    expect(queue.next(0).map(({ id, placement }) => `${id} ${placeText(placement)}`)).toEqual([
      'alone node1:01',
      'one node2:0',
    ]);
  });

  it('as many ranks run beside the slots of a host as are counted there', () => {
    const tasks = Array.from({ length: 10 }, (_, index) => taskOf(`cpu[${index}]`, { takesSlots: false }));
    expect(startedIds(queueOf(hostsOf([4]), tasks), 0)).toHaveLength(4);
    expect(startedIds(queueOf(hostsOf([4], { cpus: 6 }), tasks), 0)).toHaveLength(6);
  });

  it.each([
    [[0, 1, 2, 3, 4, 5, 6, 7], 4, [0, 1, 2, 3]],
    [[1, 2, 3, 4, 5, 6, 7], 4, [4, 5, 6, 7]],
    [[0, 2, 3, 5, 6, 7], 2, [2, 3]],
    [[0, 2, 4, 5], 3, [0, 4, 5]],
    [[3], 1, [3]],
    [[5, 6, 7], 2, [6, 7]],
    [[1, 2, 3, 4, 5, 6, 7], 3, [1, 2, 3]],
  ])('free slots %j give for %d ranks %j', (free, count, expected) => {
    expect(pickSlots(free, count)).toEqual(expected);
  });
});

describe('resources', () => {
  const share = { host: 'node1', ranks: 1, slots: [1], cpus: 0, memoryBytes: 0, exclusive: false };

  it('nothing is taken twice or given back twice', () => {
    const resources = new Resources(hostsOf([2, 2]));
    const placement = [share];
    resources.take(placement);
    expect(() => resources.take([{ ...share }])).toThrow('slot 1 of node1 is not free');
    expect(() => resources.take([{ ...share, host: 'node2' }, { ...share }])).toThrow('slot 1 of node1 is not free');
    expect(() => resources.giveBack([{ ...share }])).toThrow('a share of node1 is given back that nobody has');
    resources.giveBack(placement);
    expect(() => resources.giveBack(placement)).toThrow('nobody has');
    resources.take([{ ...share, host: 'node2' }, { ...share }]);
  });

  it.each([
    [[share, share], 'two shares of one host'],
    [[{ ...share, host: 'node9' }], 'no host is named node9'],
    [[{ ...share, slots: [0, 0] }], 'slot 0 of node1 is not free'],
    [[{ ...share, slots: [7] }], 'slot 7 of node1 is not free'],
    [[{ ...share, cpus: 9 }], 'node1 has no room'],
    [[{ ...share, memoryBytes: 9 }], 'node1 has no room'],
  ])('the placement %j is refused', (placement, message) => {
    const resources = new Resources(hostsOf([2, 2], { cpus: 8, memoryBytes: 8 }));
    expect(() => resources.take(placement)).toThrow(message);
  });
});

describe('order', () => {
  const one = hostsOf([1]);

  it.each<[string, number, Partial<WaitingTask>, Partial<WaitingTask>]>([
    ['the file decides between equals', 0, {}, {}],
    ['the larger priority goes first', 0, { priority: 2 }, { priority: 1 }],
    ['an hour of waiting is a point', 3 * HOUR, { priority: 1 }, { priority: 3, queuedAt: 2.5 * HOUR }],
    [
      'less than the points of priority does not count',
      2.5 * HOUR,
      { priority: 3, queuedAt: 2 * HOUR },
      { priority: 1 },
    ],
    ['20 points of waiting are the most', 90 * HOUR, { priority: 30, queuedAt: 80 * HOUR }, { priority: 19 }],
    ['the file decides between those with all points', 90 * HOUR, { queuedAt: 9 * HOUR }, { queuedAt: 0 }],
  ])('%s', (_title, now, first, second) => {
    const tasks = [taskOf('first', {}, first), taskOf('second', {}, second)];
    expect(startedIds(queueOf(one, tasks.toReversed()), now)).toEqual(['first']);
    // Demands of different groups, too.
    const others = [taskOf('first', { hosts: ['node1'] }, first), taskOf('second', {}, second)];
    expect(startedIds(queueOf(one, others.toReversed()), now)).toEqual(['first']);
  });

  it('a removed task does not start, and an ended one leaves its slot to the next', () => {
    const queue = queueOf(
      one,
      ['a', 'b', 'c'].map((id) => taskOf(id)),
    );
    expect(startedIds(queue, 0)).toEqual(['a']);
    queue.remove('b');
    expect(startedIds(queue, 1)).toEqual([]);
    queue.ended('a');
    expect(startedIds(queue, 2)).toEqual(['c']);
    expect(() => queue.remove('b')).toThrow('task b does not wait');
    expect(() => queue.ended('a')).toThrow('task a does not run');
    expect(() => queue.add(taskOf('c'))).toThrow('task c runs already');
  });
});

describe('backfill', () => {
  it('tasks that end before the reservation start, others do not', () => {
    const queue = behindHead();
    queue.add(taskOf('endless', {}, { timeLimitSeconds: null }));
    queue.add(taskOf('late', {}, { timeLimitSeconds: 3601 }));
    queue.add(taskOf('exact', {}, { timeLimitSeconds: 3600 }));
    expect(startedIds(queue, 0)).toEqual(['long', 'exact']);
  });

  it('tasks of any length start beside what the reservation needs', () => {
    const tasks = [taskOf('long', { ranks: 4 }), taskOf('head', { ranks: 4, hosts: ['node1', 'node3'] })];
    const endless = { timeLimitSeconds: null };
    const queue = queueOf(hostsOf([4, 2, 3]), [...tasks, taskOf('a', { ranks: 3 }, endless), taskOf('b', {}, endless)]);
    expect(queue.next(0).map(({ id, placement }) => `${id} ${placeText(placement)}`)).toEqual([
      'long node1:0123',
      'a node3:012',
      'b node2:0',
    ]);
  });

  it('short tasks keep off the hosts of the reservation where they can', () => {
    const tasks = [
      taskOf('long', { ranks: 2, hosts: ['node2'] }),
      taskOf('head', { ranks: 8, nodes: 2, hosts: ['node1', 'node2'] }),
    ];
    const queue = queueOf(hostsOf([4, 4, 4]), [...tasks, taskOf('short', {}, { timeLimitSeconds: 60 })]);
    expect(placeText(queue.next(0)[1]?.placement)).toBe('node3:0');
  });

  it.each<[string, readonly (number | null)[], number]>([
    ['tasks without time limits', [null], 10],
    ['tasks with time limits', [3600], 10],
    // Those with time limits start as long as one without is in the way.
    ['tasks with and without time limits', [null, 3600, null], 13],
  ])('a stream of %s does not keep a large task from its hosts', (_title, limits, expected) => {
    const queue = queueOf(hostsOf([2, 2]), []);
    const running: string[] = [];
    let startedAt: number | null = null;
    for (let step = 0; step < 30 && startedAt === null; step++) {
      for (const [index, timeLimitSeconds] of limits.entries())
        queue.add(taskOf(`stream[${step}.${index}]`, {}, { timeLimitSeconds, queuedAt: step }));
      if (step === 6) queue.add(taskOf('large', { ranks: 4 }, { priority: 1, queuedAt: 6 }));
      for (const id of startedIds(queue, step)) {
        if (id === 'large') startedAt = step;
        running.push(id);
      }
      const oldest = step >= 6 ? running.shift() : undefined;
      if (oldest !== undefined) queue.ended(oldest);
    }
    expect(startedAt).toBe(expected);
  });

  it('a task that overruns its time limit keeps the head from nothing but its own slots', () => {
    const queue = behindHead();
    queue.add(taskOf('later', {}, { timeLimitSeconds: 60 }));
    expect(startedIds(queue, 0)).toEqual(['long', 'later']);
    queue.ended('later');
    queue.add(taskOf('short', {}, { timeLimitSeconds: 1 }));
    expect(startedIds(queue, 2 * HOUR)).toEqual([]);
    queue.ended('long');
    expect(startedIds(queue, 2 * HOUR)).toEqual(['head']);
  });
});

describe('hosts and restarts', () => {
  it('a held host gets no task until its time is over or it is released', () => {
    const queue = queueOf(
      hostsOf([1, 1]),
      ['a', 'b', 'c'].map((id) => taskOf(id)),
    );
    queue.holdHost('node1', 500);
    queue.holdHost('node2', Infinity);
    expect(queue.wakeAt()).toBe(500);
    expect(startedIds(queue, 499)).toEqual([]);
    expect(startedIds(queue, 500)).toEqual(['a']);
    expect(queue.wakeAt()).toBe(null);
    queue.releaseHost('node2');
    expect(startedIds(queue, 501)).toEqual(['b']);
  });

  it('tasks that wait for a host that is held for ever do not hold up others', () => {
    const queue = queueOf(hostsOf([2, 2]), [
      taskOf('wide', { ranks: 4 }),
      taskOf('one', {}, { timeLimitSeconds: null }),
    ]);
    queue.holdHost('node1', Infinity);
    expect(startedIds(queue, 0)).toEqual(['one']);
  });

  it('adopted tasks keep what they have', () => {
    const queue = queueOf(hostsOf([2]), [taskOf('old', {}, { timeLimitSeconds: 60 }), taskOf('wide', { ranks: 2 })]);
    const share = { host: 'node1', ranks: 1, slots: [1], cpus: 0, memoryBytes: 0, exclusive: false };
    queue.started('old', [share, { ...share, host: 'gone' }], 1000);
    expect(startedIds(queue, 2000)).toEqual([]);
    expect(queue.why('wide', 2000)).toMatchObject({ kind: 'first', startBy: 61_000 });
    queue.ended('old');
    expect(startedIds(queue, 3000)).toEqual(['wide']);
  });
});
