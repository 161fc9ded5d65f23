/** What Slurm's commands answer, and what that means for tasks. */
import { describe, expect, it } from 'vitest';
import type { AttemptEnd } from '../../launcher/batch/attempt/records.ts';
import { newTasks } from '../../launcher/batch/model/new-tasks.ts';
import type { Task } from '../../launcher/batch/model/task.ts';
import { hostsOf } from '../../launcher/batch/slurm/follow/node-names.ts';
import { reasonText } from '../../launcher/batch/slurm/follow/reason-text.ts';
import { sightingOf, sightingOfPast } from '../../launcher/batch/slurm/follow/sighting.ts';
import { changeAfter } from '../../launcher/batch/slurm/follow/task-change.ts';
import { parseAccounting } from '../../launcher/batch/slurm/tools/accounting.ts';
import { maxArraySize } from '../../launcher/batch/slurm/tools/limits.ts';
import { parseQueue, type QueueRow } from '../../launcher/batch/slurm/tools/queue.ts';
import { submitHeld } from '../../launcher/batch/slurm/tools/submit.ts';
import { type Answer, runTool } from '../../launcher/batch/slurm/tools/tool.ts';
import { batchSpec, jobSpec } from '../rig/batch-spec.ts';
import { queueLine } from '../rig/slurm-answers.ts';

const START = '2026-11-30T10:51:40';
const startedAt = new Date(START).getTime();
const ours = (name: string): boolean => name.startsWith('b-1.');

describe('the answer of squeue', () => {
  it('rows of ours are read, those of other jobs are passed over', () => {
    const text = [
      queueLine({
        Name: 'b-1.a.1-x',
        ArrayJobID: '12',
        ArrayTaskID: '3',
        State: 'RUNNING',
        RestartCnt: '1',
        StartTime: START,
        NodeList: 'h[1-2]',
      }),
      queueLine({ Name: 'naïve job', ArrayJobID: 'odd' }),
      queueLine({ Name: 'b-1.b.2-x', State: 'PENDING', PriorityLong: '0', Reason: 'JobHeldUser' }),
      '',
    ].join('\n');
    expect(parseQueue(text, ours)).toEqual([
      {
        name: 'b-1.a.1-x',
        job: 12,
        index: 3,
        state: 'RUNNING',
        restarts: 1,
        held: false,
        reason: '',
        nodes: 'h[1-2]',
        startedAt,
        endedAt: null,
      },
      {
        name: 'b-1.b.2-x',
        job: 1,
        index: null,
        state: 'PENDING',
        restarts: 0,
        held: true,
        reason: 'JobHeldUser',
        nodes: '',
        startedAt: null,
        endedAt: null,
      },
    ]);
  });

  it.each([{ ArrayJobID: 'twelve' }, { State: '' }, { RestartCnt: '-1' }])(
    'a row of ours with %j is an error',
    (cells) => {
      expect(() => parseQueue(queueLine({ Name: 'b-1.a.1-x', ...cells }), ours)).toThrow('it lists "b-1.a.1-x');
    },
  );
});

describe('the answer of sacct', () => {
  it('ended jobs are read, and lines that say something else are left out', () => {
    const text = `12|FAILED|5:0|${START}|${START}|h1\n13_2|CANCELLED by 0|0:15|${START}|Unknown|None assigned\n14_[0-3]|PENDING|0:0|Unknown|Unknown|\nnonsense\n`;
    expect([...parseAccounting(text)]).toEqual([
      ['12', { state: 'FAILED', exitCode: 5, startedAt, endedAt: startedAt, nodes: 'h1' }],
      ['13_2', { state: 'CANCELLED', exitCode: null, startedAt, endedAt: null, nodes: '' }],
    ]);
  });
});

describe('a command of Slurm', () => {
  it('a command that is not installed is an error that says what to do', async () => {
    await expect(runTool('sbatch-that-is-not-there', [])).rejects.toThrow(
      "sbatch-that-is-not-there cannot be started (ENOENT): --via slurm needs Slurm's commands",
    );
  });

  it.each([
    ['echo 12', { ok: true, stdout: '12\n', sentence: '', unclear: false }],
    ['cat', { ok: true, stdout: 'script', sentence: '', unclear: false }],
    [
      'echo "sbatch: error: invalid partition specified: x" >&2; echo "sbatch: error: Batch job submission failed: Invalid partition name specified" >&2; exit 1',
      {
        ok: false,
        stdout: '',
        sentence: 'invalid partition specified: x; Batch job submission failed: Invalid partition name specified',
        unclear: false,
      },
    ],
    [
      'echo "squeue: error: Unable to contact slurm controller (connect failure)" >&2; exit 1',
      { ok: false, stdout: '', sentence: 'Unable to contact slurm controller (connect failure)', unclear: true },
    ],
    ['echo 12; kill -9 $$', { ok: false, stdout: '12\n', sentence: 'sh ended by SIGKILL', unclear: true }],
    ['exit 3', { ok: false, stdout: '', sentence: 'sh failed and said nothing', unclear: false }],
  ])('ncclrun reads what a command says and how it ends: %s', async (script, answer) => {
    expect(await runTool('sh', ['-c', script], 'script')).toEqual(answer);
  });
});

const answered = (answer: Partial<Answer>) =>
  submitHeld(async () => ({ ok: true, stdout: '', sentence: '', unclear: false, ...answer }), {
    name: 'n',
    indexes: null,
    maxParallel: null,
    dependency: '',
    script: '',
  });

describe('the answer of sbatch', () => {
  it.each([
    [{ stdout: '12\n' }, { answer: 'submitted', job: 12 }],
    [{ stdout: '12;other\n' }, { answer: 'submitted', job: 12 }],
    [
      { stdout: '12\n', ok: false, unclear: true },
      { answer: 'submitted', job: 12 },
    ],
    [
      { ok: false, sentence: 'Invalid qos' },
      { answer: 'refused', sentence: 'Invalid qos' },
    ],
    [
      { ok: false, unclear: true, sentence: 'Socket timed out' },
      { answer: 'unclear', sentence: 'Socket timed out' },
    ],
    [{ stdout: 'Welcome!\n' }, { answer: 'unclear', sentence: 'sbatch printed "Welcome!", and no number of a job' }],
  ])('ncclrun takes %j as it is meant', async (answer, expected) => {
    expect(await answered(answer)).toEqual(expected);
  });
});

it.each([
  ['MaxArraySize            = 4001\nMaxJobCount = 1\n', 4001],
  ['nothing of it\n', 1001],
])('the size of arrays is read from the configuration', async (stdout, size) => {
  expect(await maxArraySize(async () => ({ ok: true, stdout, sentence: '', unclear: false }))).toBe(size);
});

const row = (changes: Partial<QueueRow>): QueueRow => ({
  name: 'b-1.a.1-x',
  job: 12,
  index: null,
  state: 'PENDING',
  restarts: 0,
  held: false,
  reason: '',
  nodes: '',
  startedAt: null,
  endedAt: null,
  ...changes,
});
const end = (changes: Partial<AttemptEnd> = {}): AttemptEnd => ({
  schemaVersion: 1,
  outcome: 'error',
  exitCode: 3,
  reason: 'rank-exit',
  outOfMemory: false,
  sentence: 'rank 0 exited with status 3',
  badHosts: [],
  busySlots: [],
  endedAt: 50,
  ...changes,
});
const taskWith = (changes: Partial<Task> = {}): Task => {
  const [task] = newTasks(batchSpec([jobSpec('a')]), 1);
  if (task === undefined) throw new Error('no task');
  return { ...task, ...changes };
};

const changed = (changes: Partial<QueueRow>, record: AttemptEnd | null = null, task = taskWith(), before = 0) =>
  changeAfter(task, { sighting: sightingOf(row(changes)), before, end: record, hasBegun: record !== null, now: 99 });

describe('a task after a look at Slurm', () => {
  it('a task that waits has not changed', () => {
    expect(changed({})).toBeNull();
  });

  it.each<[Partial<QueueRow>, AttemptEnd | null, object]>([
    [{ held: true }, null, { state: 'held' }],
    [{ state: 'REQUEUE_HOLD' }, null, { state: 'held' }],
    [{ restarts: 1 }, end(), { state: 'queued', attempt: 1, message: 'attempt 1 failed: rank 0 exited with status 3' }],
    [{ restarts: 2 }, null, { state: 'queued', attempt: 2, message: 'attempt 2 was interrupted' }],
    [{ state: 'RUNNING', startedAt: 40 }, null, { state: 'running', attempt: 1, startedAt: 40 }],
    [{ state: 'SOMETHING_NEW', restarts: 2 }, null, { state: 'running', attempt: 3, startedAt: 99 }],
    [{ state: 'COMPLETED' }, null, { state: 'succeeded', attempt: 1, exitCode: 0, endedAt: 99 }],
    [{ state: 'FAILED' }, end(), { state: 'failed', exitCode: 3, endedAt: 50, message: 'rank 0 exited with status 3' }],
    [{ state: 'FAILED' }, null, { state: 'failed', message: expect.stringContaining('before it became ncclrun') }],
    [{ state: 'FAILED' }, end({ outcome: 'timed-out' }), { state: 'timed-out' }],
    [{ state: 'FAILED' }, end({ outcome: 'interruption' }), { state: 'lost' }],
    [
      { state: 'TIMEOUT' },
      end({ outcome: 'interruption' }),
      { state: 'timed-out', message: 'Slurm ended it: TIMEOUT' },
    ],
    [{ state: 'OUT_OF_MEMORY' }, null, { state: 'failed', message: 'it ran out of memory' }],
    [{ state: 'NODE_FAIL' }, null, { state: 'lost', message: 'Slurm ended it: NODE_FAIL' }],
    [{ state: 'CANCELLED' }, null, { state: 'cancelled', attempt: 0, message: 'cancelled in Slurm' }],
    [{ state: 'CANCELLED', nodes: 'h1', startedAt: 40 }, null, { state: 'cancelled', attempt: 1, startedAt: 40 }],
  ])('a task that Slurm lists with %j is what Slurm and its record say', (changes, record, expected) => {
    expect(changed(changes, record)).toMatchObject(expected);
  });

  it('the user has cancelled what he asked to cancel', () => {
    const task = taskWith({ state: 'running', attempt: 1, cancelAsked: true });
    expect(changed({ state: 'FAILED' }, end(), task)).toMatchObject({
      state: 'cancelled',
      message: 'cancelled by the user',
    });
  });

  it('a task is lost whose launcher has begun and left no record', () => {
    const sighting = sightingOf(row({ state: 'FAILED' }));
    const look = { sighting, before: 0, end: null, hasBegun: true, now: 99 };
    expect(changeAfter(taskWith(), look)).toMatchObject({ state: 'lost', message: 'its launcher was lost' });
  });

  it('attempts count on from those that the task had before', () => {
    expect(changed({ state: 'RUNNING', restarts: 1 }, null, taskWith({ attempt: 4 }), 4)).toMatchObject({ attempt: 6 });
  });

  it('a job whose end sacct has not heard of yet has none', () => {
    const past = { state: 'RUNNING', exitCode: null, startedAt, endedAt: null, nodes: 'h1' };
    expect([sightingOfPast(past), sightingOfPast({ ...past, state: 'FAILED' })?.how]).toEqual([null, 'failed']);
  });
});

it.each([
  ['Dependency', 'after prep', 'after prep'],
  ['Resources', '', 'waits for free hosts'],
  ['ReqNodeNotAvail, UnavailableNodes:h[1-2]', '', 'a host that it names is not available (ReqNodeNotAvail)'],
  ['QOSMaxJobsPerUserLimit', '', 'Slurm says: QOSMaxJobsPerUserLimit'],
  ['', '', ''],
])('the reason %s reads as words', (reason, dependency, text) => {
  expect(reasonText(reason, dependency)).toBe(text);
});

it.each([
  [
    'h[1-2],g7',
    { ranks: 6, ranksPerNode: 2 },
    [
      { name: 'h1', ranks: 2 },
      { name: 'h2', ranks: 2 },
      { name: 'g7', ranks: 2 },
    ],
  ],
  ['h1', { ranks: 6, ranksPerNode: null }, [{ name: 'h1', ranks: 6 }]],
  [
    'h[1-2]',
    { ranks: 6, ranksPerNode: null },
    [
      { name: 'h1', ranks: null },
      { name: 'h2', ranks: null },
    ],
  ],
  ['h[1-2', { ranks: 1, ranksPerNode: 1 }, [{ name: 'h[1-2', ranks: 1 }]],
  ['', undefined, []],
])('the hosts %s are those of the task', (nodes, demand, hosts) => {
  expect(hostsOf(nodes, demand)).toEqual(hosts);
});
