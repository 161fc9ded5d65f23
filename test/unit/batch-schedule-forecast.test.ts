/** What is expected of the tasks of a batch, and its chart. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { forecast } from '../../launcher/batch/schedule/forecast.ts';
import { ganttText } from '../../launcher/batch/schedule/gantt.ts';
import { hostsOf, queueOf, taskOf } from '../rig/batch/workload.ts';

const NOON = Date.UTC(2026, 10, 29, 12);

beforeAll(() => vi.stubEnv('TZ', 'UTC'));
afterAll(() => vi.unstubAllEnvs());

describe('a forecast', () => {
  it('tasks that depend on others are added when these end', () => {
    const queue = queueOf(hostsOf([1]), [taskOf('prep', {}, { timeLimitSeconds: 600 })]);
    const train = taskOf('train', {}, { timeLimitSeconds: null });
    const tasks = forecast(queue, NOON, {
      seconds: (id) => (id === 'prep' ? 60 : null),
      released: (id) => (id === 'prep' ? [train] : []),
    });
    expect(tasks).toMatchObject([
      { id: 'prep', startAt: NOON, endAt: NOON + 60_000 },
      { id: 'train', startAt: NOON + 60_000, endAt: null },
    ]);
  });

  it('running tasks end by their time limits at the latest, and a task behind an endless one has no start', () => {
    const queue = queueOf(hostsOf([1, 1]), [
      taskOf('a'),
      taskOf('b', { hosts: ['node2'] }, { timeLimitSeconds: null }),
    ]);
    queue.next(NOON);
    queue.add(taskOf('c', { hosts: ['node2'] }));
    queue.add(taskOf('d'));
    expect(forecast(queue, NOON + 60_000, { seconds: () => 7200 * 1000 })).toMatchObject([
      { id: 'a', startAt: NOON, endAt: NOON + 3_600_000 },
      { id: 'b', startAt: NOON, endAt: NOON + 7_200_000_000 },
      { id: 'd', startAt: NOON + 3_600_000 },
      { id: 'c', startAt: NOON + 7_200_000_000 },
    ]);
    const others = forecast(queue, NOON + 60_000, { seconds: () => null });
    expect(others.at(-1)).toEqual({ id: 'c', startAt: null, endAt: null, placement: null });
  });
});

describe('a chart', () => {
  it('hosts with the same line share it, and jobs have letters', () => {
    const tasks = [
      taskOf('prep', {}, { timeLimitSeconds: 1800 }),
      ...[0, 1].map((index) => taskOf(`train[${index}]`, { ranks: 16, nodes: 2 }, { timeLimitSeconds: 7200 })),
      taskOf('large', { ranks: 99 }),
    ];
    const hosts = hostsOf([8, 8, 8, 8]).map(({ name }) => name);
    const chart = {
      tasks: forecast(queueOf(hostsOf([8, 8, 8, 8]), tasks), NOON, { seconds: () => null }),
      hosts,
      now: NOON,
    };
    expect(ganttText({ ...chart, columns: 52 })).toMatchInlineSnapshot(`
      "            12:00                              14:30
      node1       aaaaaaaabbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
      node[2-3]   bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb........
      node4       ........bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
      a prep (1 task), b train (2 tasks)
      no start is known: large
      "
    `);
  });

  it('hundreds of hosts and jobs stay within 80 columns', () => {
    const slots = Array.from({ length: 300 }, () => 1);
    const tasks = Array.from({ length: 400 }, (_, index) =>
      taskOf(`job-${index}`, {}, { timeLimitSeconds: 60 * (1 + (index % 7)) }),
    );
    const hosts = hostsOf(slots).map(({ name }) => name);
    const text = ganttText({
      tasks: forecast(queueOf(hostsOf(slots), tasks), NOON, { seconds: () => null }),
      hosts,
      now: NOON,
    });
    expect(text.split('\n').filter((line) => line.length > 80)).toEqual([]);
    expect(text).toContain('# job-399 (1 task)');
  });

  it('a chart without tasks is idle', () => {
    expect(ganttText({ tasks: [], hosts: ['node1'], now: NOON, columns: 30 })).toBe(
      '            12:00        12:00\nnode1       ..................\nno task starts\n',
    );
  });
});
