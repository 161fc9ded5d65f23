/** What `ncclrun status` prints, and which ranks `ncclrun logs` and `attach` accept. */
import { describe, expect, it } from 'vitest';
import { followedRanks } from '../../launcher/cli/followed-ranks.ts';
import { plainVerdict } from '../../launcher/hang/ends.ts';
import type { RunningJob } from '../../launcher/jobs/find.ts';
import { statusText } from '../../launcher/jobs/status-text.ts';
import type { CommunicatorGroup, JobStatus, Outlier } from '../../launcher/model/status.ts';
import { failureFrom } from './failure-from.ts';

function job(...ranks: readonly number[][]): RunningJob {
  const hosts = ranks.map((own, index) => ({ name: `h${index}`, ranks: own }));
  return { schemaVersion: 1, jobId: 'j\u001b', startedAt: 1000, programs: [['p']], hosts, pid: 7 };
}

const healthy: JobStatus = {
  schemaVersion: 1,
  takenAt: 62_000,
  ranks: 2,
  hosts: 1,
  silent: [],
  outliers: [],
  groups: [],
  without: 0,
  verdicts: [],
};
const group: CommunicatorGroup = {
  count: 1,
  ids: ['00c0ffee'],
  size: 2,
  hosts: 1,
  shares: [{ condition: 'running', count: 2, seconds: 0 }],
  operations: { lowest: 5, highest: 7, collective: 'allReduce' },
};
const barrier = { lowest: 7, highest: 7, collective: 'barrier' };
const outlier: Outlier = {
  ranks: '3',
  hosts: ['a'],
  communicator: 'c',
  condition: 'waiting',
  seconds: 12,
  operation: 5,
  others: 7,
  collective: 'broadcast',
};

function lines(status: Partial<JobStatus>): string[] {
  return statusText(job([0, 1]), { ...healthy, ...status })
    .split('\n')
    .slice(1, -1);
}
const groups = (...changes: readonly Partial<CommunicatorGroup>[]) =>
  lines({ groups: changes.map((change) => ({ ...group, ...change })) }).slice(1);
const outliers = (change: Partial<Outlier>) => lines({ groups: [group], outliers: [{ ...outlier, ...change }] })[1];

describe('the status of a job', () => {
  it('the first line has the size and the age of the job, and no control characters', () => {
    const [first] = statusText(job([0, 1]), healthy).split('\n');
    expect(first).toBe(String.raw`job j\x1b: 2 ranks on 1 host, for 1 min`);
  });

  it.each<[Partial<JobStatus>, string[]]>([
    [{}, ['communicators', '  none']],
    [{ without: 1 }, ['communicators', '  1 rank without a communicator']],
    [
      { without: 3, groups: [group] },
      [
        'communicators',
        '  1 communicator of 2 ranks on 1 host: running, allReduce #5-7 (00c0ffee)',
        '  3 ranks without a communicator',
      ],
    ],
  ])('the status %j names the communicators %j', (status, expected) => {
    expect(lines(status)).toEqual(expected);
  });

  it('sections without entries are left out, and all others stand in their order', () => {
    const late = { kind: 'late', confidence: 'likely', message: 'rank 1 is late', blamed: [], evidence: [] } as const;
    const status = { silent: ['h2', 'h3'], outliers: [outlier], groups: [group], verdicts: [plainVerdict(late)] };
    expect(lines(status).filter((line) => !line.startsWith(' '))).toEqual([
      'no answer from',
      'outliers',
      'communicators',
      'verdicts',
    ]);
    expect(lines(status).slice(0, 3)).toEqual(['no answer from', '  h2', '  h3']);
    expect(lines(status).at(-1)).toBe('  late: rank 1 is late');
  });

  it.each<[Partial<CommunicatorGroup>, string]>([
    [{ operations: null }, '1 communicator of 2 ranks on 1 host: running, no operation yet (00c0ffee)'],
    [{ operations: barrier }, '1 communicator of 2 ranks on 1 host: running, barrier #7 (00c0ffee)'],
    [{ count: 2, ids: ['a', 'b'], hosts: 2 }, '2 communicators of 2 ranks on 2 hosts: running, allReduce #5-7'],
    [{ count: 2, operations: null }, '2 communicators of 2 ranks on 1 host: running, no operation yet'],
    [
      { ids: ['c'], shares: [{ condition: 'waiting', count: 2, seconds: 4 }], operations: barrier },
      '1 communicator of 2 ranks on 1 host: waiting for 4 s, barrier #7 (c)',
    ],
  ])('communicators of %j are "%s"', (change, expected) => {
    expect(groups(change)).toEqual([`  ${expected}`]);
  });

  it('ranks of a communicator in different conditions are counted', () => {
    const shares = [
      { condition: 'running', count: 1, seconds: 0 },
      { condition: 'waiting', count: 1, seconds: 1 },
    ] as const;
    expect(groups({ shares, count: 2 })).toEqual([
      '  2 communicators of 2 ranks on 1 host: 1 running, 1 waiting for 1 s, allReduce',
      '  #5-7',
    ]);
  });

  it.each<[Partial<Outlier>, string]>([
    [{}, 'rank 3 on a: waiting for 12 s at broadcast #5 (most ranks: #7) of c'],
    [{ others: 5 }, 'rank 3 on a: waiting for 12 s at broadcast #5 of c'],
    [{ others: null, collective: null }, 'rank 3 on a: waiting for 12 s at operation #5 of c'],
    [{ seconds: 0, operation: null }, 'rank 3 on a: waiting before the first operation (most ranks: #7) of c'],
    [
      { ranks: '3,5', hosts: ['a', 'b', 'd'] },
      'ranks 3,5 on a, b, d: waiting for 12 s at broadcast #5 (most ranks: #7) of c',
    ],
    [
      { ranks: '3-5', hosts: ['a', 'b', 'd', 'e'] },
      'ranks 3-5 on 4 hosts: waiting for 12 s at broadcast #5 (most ranks: #7) of c',
    ],
  ])('an outlier of %j is "%s"', (change, expected) => {
    expect(outliers(change)).toBe(`  ${expected}`);
  });
});

describe('--rank of ncclrun logs and attach', () => {
  const two = job([0, 2], [1]);
  it.each<[string | null, unknown]>([
    [null, null],
    ['0', [{ first: 0, last: 0 }]],
    [
      '0,1-2',
      [
        { first: 0, last: 0 },
        { first: 1, last: 2 },
      ],
    ],
  ])('%j names ranks of the job', (text, expected) => {
    expect(followedRanks(text, two)).toEqual(expected);
  });

  it.each<[string, RunningJob, string]>([
    ['x', two, '--rank is "x"'],
    ['2-1', two, '--rank is "2-1"'],
    ['0,1-3', two, '--rank names rank 3; job j\u001b has ranks 0 to 2'],
    ['1', job([0]), '--rank names rank 1; job j\u001b has rank 0 only'],
  ])('%j is refused', (text, of, message) => {
    expect(failureFrom(() => followedRanks(text, of))).toMatchObject({ type: 'usage', message });
  });
});
