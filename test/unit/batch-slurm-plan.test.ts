/** A batch file as submissions to Slurm: which pieces, with which options, in which order. */
import { describe, expect, it } from 'vitest';
import { newTasks } from '../../launcher/batch/model/new-tasks.ts';
import type { BatchSpec } from '../../launcher/batch/model/spec.ts';
import type { Task } from '../../launcher/batch/model/task.ts';
import { noticesOf } from '../../launcher/batch/slurm/plan/notices.ts';
import type { Piece } from '../../launcher/batch/slurm/plan/piece.ts';
import { planPieces } from '../../launcher/batch/slurm/plan/pieces.ts';
import { refuseOnSlurm } from '../../launcher/batch/slurm/plan/refuse.ts';
import { resourceOptions } from '../../launcher/batch/slurm/plan/resources.ts';
import { limitsOf } from '../../launcher/batch/slurm/plan/time-limit.ts';
import { dependencyText } from '../../launcher/batch/slurm/plan/waits.ts';
import { rangesOf, targetWords } from '../../launcher/batch/slurm/tools/control.ts';
import { jobWith } from '../rig/batch-files.ts';
import { after, arrayOf, batchSpec, jobSpec } from '../rig/batch-spec.ts';

function planned(spec: BatchSpec, maxArraySize = 1001, changes: Readonly<Record<number, Partial<Task>>> = {}): Piece[] {
  const tasks = newTasks(spec, 0).map((task) => ({ ...task, ...changes[task.id] }));
  const open = tasks.filter(({ state }) => state === 'queued').map(({ id }) => id);
  return planPieces({ batch: 'b-1', key: 'ab12', maxArraySize, spec, tasks, earlier: [] }, new Set(open));
}

describe('the pieces of a batch', () => {
  it('each job waits for the pieces of those that it depends on, which come first', () => {
    const spec = batchSpec([
      jobSpec('last', { dependencies: [after('train', 'any'), after('prep', 'start')] }),
      jobSpec('train', { array: arrayOf(3), dependencies: [after('prep')] }),
      jobSpec('prep'),
      jobSpec('mend', { dependencies: [after('prep', 'notok')] }),
    ]);
    const pieces = planned(spec);
    expect(pieces.map(({ name }) => name)).toEqual([
      'b-1.prep.1-ab12',
      'b-1.train.2-ab12',
      'b-1.last.3-ab12',
      'b-1.mend.4-ab12',
    ]);
    const texts = pieces.map(({ waits }) => dependencyText(waits, (piece) => String(100 + piece)));
    expect(texts).toEqual(['', 'afterok:101', 'afterany:102,after:101', 'afternotok:101']);
  });

  it('an array beyond the size that Slurm counts becomes several, whose tasks are counted from 0', () => {
    const pieces = planned(batchSpec([jobSpec('a', { array: arrayOf(10) })]), 4);
    expect(pieces.map(({ tasks }) => tasks.map(({ index }) => index))).toEqual([
      [0, 1, 2, 3],
      [0, 1, 2, 3],
      [0, 1],
    ]);
    expect(pieces.map(({ waits }) => waits)).toEqual([[], [], []]);
  });

  it('pieces of an array with max_parallel run one after another', () => {
    const pieces = planned(batchSpec([jobSpec('a', { array: arrayOf(6, 2) })]), 4);
    expect(pieces[1]?.waits).toEqual([{ kind: 'afterany', pieces: [1] }]);
  });

  it('tasks of two arrays wait for each other piece by piece', () => {
    const jobs = [
      jobSpec('a', { array: arrayOf(6) }),
      jobSpec('b', { array: arrayOf(6), dependencies: [after('a', 'ok', true)] }),
    ];
    const waits = planned(batchSpec(jobs), 4).map((piece) => piece.waits);
    expect(waits).toEqual([[], [], [{ kind: 'aftercorr', pieces: [1] }], [{ kind: 'aftercorr', pieces: [2] }]]);
  });

  it('what has ended already is no condition any more', () => {
    const spec = batchSpec([jobSpec('a'), jobSpec('b', { dependencies: [after('a')] })]);
    expect(planned(spec, 1001, { 0: { state: 'succeeded' } })).toMatchObject([{ name: 'b-1.b.1-ab12', waits: [] }]);
  });

  it('a piece begins with the attempts that its tasks had', () => {
    const spec = batchSpec([jobSpec('a', { array: arrayOf(2) })]);
    expect(planned(spec, 1001, { 1: { attempt: 3 } })).toMatchObject([{ before: 3 }]);
  });

  it('a job cannot wait for one failure among several arrays of Slurm', () => {
    const spec = batchSpec([
      jobSpec('a', { array: arrayOf(6) }),
      jobSpec('b', { dependencies: [after('a', 'notok')] }),
    ]);
    expect(() => planned(spec, 4)).toThrow('that array is 2 jobs in Slurm');
  });

  it('a dropped piece is no condition any more', () => {
    const waits = [
      { kind: 'afterok', pieces: [1, 2] },
      { kind: 'after', pieces: [3] },
    ] as const;
    expect(dependencyText(waits, (piece) => (piece === 2 ? '12' : null))).toBe('afterok:12');
  });
});

describe('the options of sbatch', () => {
  it.each<[readonly string[], readonly string[]]>([
    [[], ['--ntasks=1', '--requeue']],
    [
      ['nodes: 2', 'gpus_per_node: 8'],
      ['--nodes=2', '--ntasks=16', '--ntasks-per-node=8', '--gpus-per-node=8', '--requeue'],
    ],
    [['gpus: H100:16'], ['--ntasks=16', '--gpus=H100:16', '--requeue']],
    [
      ['gpus_per_node: 0', 'ntasks: 4', 'cpus_per_task: 12'],
      ['--ntasks=4', '--cpus-per-task=12', '--requeue'],
    ],
    [
      ['mem: 1.5G', 'exclusive: true'],
      ['--ntasks=1', '--mem=1536M', '--exclusive', '--requeue'],
    ],
    [
      ['hosts: "n[1-2]"', 'exclude: n3', 'nodes: 2'],
      ['--nodes=2', '--ntasks=2', '--ntasks-per-node=1', '--nodelist=n1,n2', '--exclude=n3', '--requeue'],
    ],
    [['time_limit: 90s'], ['--ntasks=1', '--time=2', '--requeue']],
    [
      ['time_limit: 12h', 'signal: USR1@120'],
      ['--ntasks=1', '--time=720', '--signal=B:USR1@120', '--requeue'],
    ],
    [
      ['time_limit: 10m', 'signal: TERM@60'],
      ['--ntasks=1', '--time=11', '--signal=B:TERM@120', '--requeue'],
    ],
    [['requeue: false'], ['--ntasks=1', '--no-requeue']],
    [['slurm: [--partition=short, -Amine]'], ['--ntasks=1', '--requeue', '--partition=short', '-Amine']],
    [['priority: 20'], ['--ntasks=1', '--nice=3000', '--requeue']],
  ])('sbatch gets the options of a job with %j', (lines, options) => {
    expect(resourceOptions(jobWith(...lines), 50)).toEqual(options);
  });

  it.each([
    [30, 1, 30],
    [60, 2, 60],
    [90, 2, 90],
    [3600, 60, 3570],
    [43_200, 720, 43_170],
    [43_201, 721, 43_201],
  ])('ncclrun ends a job of %i s ahead of Slurm', (seconds, minutes, timeoutSeconds) => {
    expect(limitsOf(seconds)).toEqual({ minutes, timeoutSeconds });
  });
});

describe('what Slurm cannot do', () => {
  it.each([
    ['slurm: [--job-name=x]', 'a (f.yaml:2) has --job-name=x in slurm:, and the batch itself decides --job-name'],
    ['slurm: [-a1-3]', 'a (f.yaml:2) has -a1-3 in slurm:, and the batch itself decides -a'],
    ['slurm: [--wait]', 'the batch itself decides --wait'],
    [
      'hosts: "n[1-4]"',
      'a (f.yaml:2) wants 1 of the 4 hosts that it names, and Slurm gives a job all hosts that it names',
    ],
  ])('ncclrun refuses %s with the place in the file', (line, message) => {
    expect(() => refuseOnSlurm(batchSpec([jobWith(line)]), 'f.yaml')).toThrow(message);
  });

  it.each([['slurm: [--partition=short]'], ['slurm: [-Amine]'], ['hosts: n1']])('ncclrun takes %s', (line) => {
    expect(() => refuseOnSlurm(batchSpec([jobWith(line)]), 'f.yaml')).not.toThrow();
  });

  it('ncclrun says what Slurm does otherwise, once for the whole batch', () => {
    const job = jobSpec('a', {
      line: 7,
      retry: { errors: 2, interruptions: 0, unlessExit: [], delaySeconds: 30, onOutOfMemory: false },
    });
    const spec = batchSpec([job, { ...job, name: 'b' }, jobSpec('c', { priority: 80 })], {
      onFailure: 'stop',
      notify: ['mail'],
    });
    const notices = noticesOf(spec, planned(spec));
    expect(notices).toEqual([
      expect.stringMatching(/^a \(line 7\): Slurm itself decides when a failed attempt starts again/u),
      expect.stringMatching(/^c \(line 1\): priority orders the jobs of this batch alone/u),
      expect.stringMatching(/^on_failure: stop takes effect while/u),
      expect.stringMatching(/^notify takes effect while/u),
    ]);
  });

  it('a batch that asks for nothing special gets no notice', () => {
    const spec = batchSpec([jobSpec('a')]);
    expect(noticesOf(spec, planned(spec))).toEqual([]);
  });
});

it.each([
  [[{ job: 12, index: null }], ['12']],
  [[{ job: 12, index: 3 }], ['12_3']],
  [
    [
      { job: 12, index: 5 },
      { job: 12, index: 3 },
      { job: 12, index: 4 },
      { job: 13, index: 0 },
    ],
    ['12_[3-5]', '13_0'],
  ],
])('Slurm reads the jobs %j in as few words as possible', (targets, words) => {
  expect(targetWords(targets)).toEqual(words);
});

it('numbers of tasks become ranges', () => {
  expect(rangesOf([7, 0, 1, 2, 4, 5, 2])).toBe('0-2,4-5,7');
});
