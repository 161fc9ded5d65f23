/** What a batch looks like on a terminal. */
import { describe, expect, it } from 'vitest';
import { newTasks } from '../../launcher/batch/model/new-tasks.ts';
import type { Task } from '../../launcher/batch/model/task.ts';
import { eventText } from '../../launcher/batch/text/event-text.ts';
import { ProgressLine } from '../../launcher/batch/text/progress-line.ts';
import { batchesText, batchText } from '../../launcher/batch/text/status-table.ts';
import { outputOf } from '../../launcher/batch/run/output-path.ts';
import type { BatchStatus, TaskStatus } from '../../launcher/batch/serve/request.ts';
import { arrayOf, batchSpec, jobSpec } from '../rig/batch-spec.ts';

describe('the line of a batch that runs', () => {
  const tasks: Task[] = newTasks(batchSpec([jobSpec('t', { array: arrayOf(10) })]), 0);
  const change = (id: number, state: Task['state']) => {
    const task = tasks[id];
    if (task !== undefined) tasks[id] = { ...task, state };
  };
  const line = new ProgressLine({ tasks: () => tasks, nameOf: (task) => nameOf(task.id), begunAt: 1000 });

  it('says how many tasks have ended, which run, and how long the others will take', () => {
    expect(line.line(80, 1000)).toBe('0/10 tasks ended');
    for (const id of [4, 5]) change(id, 'running');
    expect(line.line(80, 2000)).toBe('0/10 tasks ended, 2 running: t[4] t[5]');
    for (const id of [0, 1, 2]) change(id, 'succeeded');
    change(3, 'failed');
    expect(line.line(80, 61_000)).toBe('4/10 tasks ended (1 failed), 2 running, about 1 min left: t[4] t[5]');
    expect(line.line(52, 61_000)).toBe('4/10 tasks ended (1 failed), 2 running, about 1 min ');
  });
});

const nameOf = (id: number) => `t[${id}]`;

describe('events of a batch', () => {
  const placement = [{ host: 'h1', ranks: 2, slots: [0, 1], cpus: 2, memoryBytes: 0, exclusive: false }];

  it.each([
    [{ type: 'started', task: 1, attempt: 1, placement }, 't[1] runs on h1:2'],
    [{ type: 'started', task: 1, attempt: 3, placement }, 't[1] runs on h1:2 (attempt 3)'],
    [{ type: 'ended', task: 1, state: 'succeeded', message: '' }, 't[1] succeeded'],
    [{ type: 'ended', task: 1, state: 'timed-out', message: 'after 5 s' }, 't[1] ran into its time limit: after 5 s'],
    [
      { type: 'retry', task: 1, message: 'attempt 1 failed: x', notBefore: 31_000 },
      't[1]: attempt 1 failed: x; again in 30 s',
    ],
    [
      { type: 'retry', task: 1, message: 'attempt 1 failed: x', notBefore: 1000 },
      't[1]: attempt 1 failed: x; again as soon as there is room',
    ],
    [{ type: 'adopted', task: 1, attempt: 2 }, 't[1] runs still (attempt 2)'],
    [
      { type: 'quarantined', host: 'h1', until: 901_000, reason: 'it was lost' },
      'h1 gets no tasks for 15 min: it was lost',
    ],
    [{ type: 'stopping', how: 'finish' }, 'no more tasks start; ^C again ends those that run'],
  ] as const)('the event %j is one line', (event, text) => {
    expect(eventText(event, nameOf, 1000)).toBe(text);
  });
});

const task = (name: string, changes: Partial<TaskStatus> = {}): TaskStatus => ({
  name,
  state: 'queued',
  attempt: 0,
  hosts: [],
  output: null,
  message: '',
  queuedAt: 0,
  startedAt: null,
  endedAt: null,
  exitCode: null,
  ...changes,
});
const status: BatchStatus = {
  schemaVersion: 1,
  id: 'sweep-1',
  file: 'sweep.yaml',
  scheduler: 4711,
  createdAt: 0,
  endedAt: null,
  tasks: [
    task('prep', { state: 'succeeded', attempt: 1, hosts: [{ name: 'h1', ranks: 1 }], startedAt: 0, endedAt: 61_000 }),
    task('train[0]', {
      state: 'running',
      attempt: 2,
      hosts: [
        { name: 'h1', ranks: 8 },
        { name: 'h2', ranks: 8 },
      ],
      startedAt: 60_000,
    }),
    task('eval', { message: 'after train' }),
  ],
  hosts: [{ name: 'h3', slots: 8, used: 0, quarantinedUntil: 1_000_000, reason: 'it was lost 2 times' }],
};

describe('the table of a batch', () => {
  it('has a line for each task, and one for each host that gets none', () => {
    expect(batchText(status, 120_000)).toBe(
      [
        'sweep-1 (sweep.yaml): running, process 4711: 3 tasks: 1 queued, 1 running, 1 succeeded',
        'TASK      STATE      ATTEMPT  HOSTS      TIME   WHY',
        'prep      succeeded        1  h1:1       1 min',
        'train[0]  running          2  h1:8,h2:8  1 min',
        'eval      queued                                after train',
        'h3 gets no tasks for 14 min: it was lost 2 times; ncclrun release --host h3 sweep-1 ends that',
        '',
      ].join('\n'),
    );
  });

  it('the table of several batches has a line for each', () => {
    const ended = { ...status, id: 'old-1', scheduler: null, endedAt: 3_600_000 };
    const killed = { ...status, id: 'cut-1', scheduler: null };
    const rows = batchesText([status, ended, killed], 7_200_000).split('\n');
    expect(rows.map((row) => row.split(/ +/u).slice(0, 3).join(' '))).toEqual([
      'BATCH STATE TASKS',
      'sweep-1 running 3',
      'old-1 ended 3',
      'cut-1 interrupted 3',
      '',
    ]);
    expect(batchesText([], 0)).toBe('no batch of yours is kept on this machine\n');
  });
});

it.each([
  ['%x.%a.%r.out', '/work/train.3.2.out', null],
  ['logs/%A-%j.out', '/work/logs/sweep-1-7.out', null],
  ['/abs/100%%.out', '/abs/100%.out', null],
  ['%x.%t.out', '/attempts/launcher.out', '/work/train.%r.out'],
  ['%x/%N-100%%', '/attempts/launcher.out', '/work/train/%h-100%%'],
])('the output pattern %s means %s, and %s for each rank', (pattern, path, ofRanks) => {
  const facts = { batch: 'sweep-1', job: 'train', index: 3, task: 7, attempt: 2 };
  expect(outputOf(pattern, '/work', '/attempts/launcher.out', facts)).toEqual({ path, ofRanks });
});
