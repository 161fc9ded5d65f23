/** In which order the tasks of a batch start. */
import { describe, expect, it } from 'vitest';
import type { TaskQueue } from '../../launcher/batch/schedule/queue.ts';
import type { WaitingTask } from '../../launcher/batch/schedule/task.ts';
import { hostsOf, placeText, queueOf, taskOf } from '../rig/batch/workload.ts';

const HOUR = 3_600_000;

function startedIds(queue: TaskQueue, now: number): string[] {
  return queue.next(now).map(({ id }) => id);
}

/** 4 slots of node1 are taken for an hour; `head` wants all of both hosts. */
function behindHead(): TaskQueue {
  return queueOf(hostsOf([4, 4]), [taskOf('long', { ranks: 4 }), taskOf('head', { ranks: 8 })]);
}

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
    ['a task with all points goes before a younger one', 21 * HOUR, { queuedAt: 0 }, { queuedAt: 10 * HOUR }],
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

  it('tasks that start at once leave together what the reservation needs', () => {
    const tasks = [taskOf('long', { ranks: 4 }), taskOf('head', { ranks: 6 })];
    const others = ['a', 'b'].map((id) => taskOf(id, { ranks: 2 }, { timeLimitSeconds: null }));
    expect(startedIds(queueOf(hostsOf([8]), [...tasks, ...others]), 0)).toEqual(['long', 'a']);
  });

  it('running tasks without time limits count to what need not be reserved', () => {
    const endless = { timeLimitSeconds: null };
    const tasks = [taskOf('long', { ranks: 4 }, endless), taskOf('head', { ranks: 6 }), taskOf('more', {}, endless)];
    expect(startedIds(queueOf(hostsOf([8]), tasks), 0)).toEqual(['long']);
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
