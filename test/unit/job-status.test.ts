/** What the launcher says of a running job, from planted positions of its ranks at two readings. */
import { describe, expect, it } from 'vitest';
import { jobStatus } from '../../launcher/hang/status.ts';
import type { JobStatus } from '../../launcher/model/status.ts';
import { ended, readings } from '../rig/positions.ts';
import type { Change, PlantedComm, PlantedJob } from '../rig/positions.ts';

const [aa, bb] = ['00000000000000aa', '00000000000000bb'] as const;
const count = (length: number): number[] => Array.from({ length }, (_, index) => index);

function status(job: PlantedJob, moved: readonly number[] = [], ranks = 8): JobStatus {
  return jobStatus(...readings(job, moved), { ranks, takenAt: 5, verdicts: [] });
}

/** `odd`: the ranks that have the change. */
function comm(size: number, odd: readonly number[], change: Change = ended(16)): PlantedComm {
  return { id: aa, ranks: count(size), changes: Object.fromEntries(odd.map((rank) => [rank, change])) };
}

const outliers = (job: PlantedJob, moved: readonly number[] = []) =>
  status(job, moved).outliers.map(({ ranks, condition }) => [ranks, condition]);

const outside = (own: readonly number[], operation: number): Record<number, Change> =>
  Object.fromEntries(own.map((rank, index) => [rank, ended(operation - (operation === 17 ? 0 : index))]));

describe('the status of a job', () => {
  it('a rank outside of the operation in which all others wait stands out with both operations', () => {
    expect(status({ comms: [comm(4, [3])] })).toEqual({
      schemaVersion: 1,
      takenAt: 5,
      ranks: 8,
      hosts: 2,
      silent: [],
      outliers: [
        {
          ranks: '3',
          hosts: ['h1'],
          communicator: aa,
          condition: 'idle',
          seconds: 0,
          operation: 16,
          others: 17,
          collective: 'allReduce',
        },
      ],
      groups: [
        {
          count: 1,
          ids: [aa],
          size: 4,
          hosts: 2,
          shares: [
            { condition: 'waiting', count: 3, seconds: 31.3 },
            { condition: 'idle', count: 1, seconds: 0 },
          ],
          operations: { lowest: 16, highest: 17, collective: 'allReduce' },
        },
      ],
      without: 4,
      verdicts: [],
    });
  });

  it('a rank that has begun no operation stands out without one', () => {
    expect(status({ comms: [comm(4, [1], ended(0))] }).outliers).toMatchObject([
      { ranks: '1', operation: null, others: 17, collective: null },
    ]);
    const [one] = status({ comms: [{ ...comm(4, [1], { operation: 1 }), all: ended(0) }] }).outliers;
    expect(one).toMatchObject({ ranks: '1', operation: 1, others: null, collective: 'allReduce' });
  });

  it.each([
    ['a quarter of a communicator stands out', 8, [2, 5], [['2,5', 'idle']]],
    ['more than a quarter of a communicator do not stand out', 7, [2, 5], []],
    ['ten ranks of many stand out', 64, count(10), [['0-9', 'idle']]],
    ['eleven ranks of many do not stand out', 64, count(11), []],
  ] as const)('%s', (_title, size, odd, expected) => {
    expect(outliers({ comms: [comm(size, odd)] })).toEqual(expected);
  });

  it('ranks that wait in different operations are different outliers', () => {
    const changes = { 2: ended(16), 5: ended(15) };
    expect(outliers({ comms: [{ id: aa, ranks: count(8), changes }] })).toEqual([
      ['2', 'idle'],
      ['5', 'idle'],
    ]);
  });

  it('the ranks of an operation are most of a communicator if they are one more than those of any other', () => {
    const changes = Object.fromEntries(count(6).map((rank) => [rank, ended(14 + Math.floor(rank / 2))]));
    expect(outliers({ comms: [{ id: aa, ranks: count(9), changes }] })).toEqual([
      ['0-1', 'idle'],
      ['2-3', 'idle'],
      ['4-5', 'idle'],
    ]);
  });

  it('the first rank stands for most where all four ranks differ', () => {
    const changes = { 1: ended(16), 2: ended(15), 3: ended(14) };
    expect(status({ comms: [{ id: aa, ranks: count(4), changes }] }).outliers).toMatchObject([
      { ranks: '1', others: 17 },
      { ranks: '2', others: 17 },
      { ranks: '3', others: 17 },
    ]);
  });

  it('ranks that make progress in different operations are alike', () => {
    const changes = { 2: { operation: 18 }, 5: ended(15) };
    expect(status({ comms: [{ id: aa, ranks: count(8), changes }] }, count(8))).toMatchObject({
      outliers: [],
      groups: [{ shares: [{ condition: 'running', count: 8, seconds: 0 }] }],
    });
  });

  it('a rank that waits for others does not stand out where the others make progress', () => {
    expect(outliers({ comms: [comm(8, [])] }, count(7))).toEqual([]);
  });

  it.each([
    ['stopped', 'stopped'],
    ['frozen', 'frozen'],
    ['uninterruptible', 'uninterruptible'],
    ['zombie', 'dead'],
  ] as const)('a process that is %s stands out as %s where the others make progress', (state, condition) => {
    const job: PlantedJob = { comms: [comm(8, [])], processes: { 7: { state } } };
    expect(outliers(job, count(7))).toEqual([['7', condition]]);
    expect(status(job, count(7)).outliers[0]?.others).toBeNull();
  });

  it.each([
    [10, [['0-9', 'stopped']]],
    [11, []],
  ] as const)('where the others make progress, %i stopped ranks stand out if ten are the most', (stopped, expected) => {
    const processes = Object.fromEntries(count(stopped).map((rank) => [rank, { state: 'stopped' as const }]));
    expect(outliers({ comms: [comm(64, [])], processes }, count(64).slice(stopped))).toEqual(expected);
  });

  it('a job has at most 64 outliers', () => {
    const comms = count(65).map((index) => ({ ...comm(4, [3]), id: `${index}`.padStart(16, '0') }));
    const found = status({ comms });
    expect(found.outliers).toHaveLength(64);
    expect(found.outliers.at(-1)?.communicator).toBe('63'.padStart(16, '0'));
    expect(found.groups).toMatchObject([{ count: 65, ids: { length: 16 } }]);
  });

  it('communicators of one size and state are a group, the largest first', () => {
    const pair = { ranks: [0, 1] };
    const comms = [
      { ...pair, id: '01' },
      { ...pair, id: '02' },
      { ...pair, id: '03', changes: { 1: ended(16) } },
      { id: '04', ranks: [0, 2] },
      { ...comm(4, []), id: '05', all: ended(0) },
    ].map((one) => ({ ...one, id: one.id.padStart(16, '0') }));
    const groups = status({ comms }).groups.map(({ ids, size, hosts, operations }) => [
      ids.map(Number).join(),
      size,
      hosts,
      operations?.highest ?? null,
    ]);
    expect(groups).toEqual([
      ['5', 4, 2, null],
      ['1,2', 2, 1, 17],
      ['3', 2, 1, 17],
      ['4', 2, 2, 17],
    ]);
  });

  it('a communicator that an outlier has is no group with one of the same shares and none', () => {
    const comms = [
      { id: aa, ranks: count(8), changes: outside([1, 2, 3], 16) },
      { id: bb, ranks: count(8), changes: outside([1, 2, 3], 17) },
    ];
    expect(status({ comms }).groups.map(({ ids }) => ids)).toEqual([[aa], [bb]]);
  });

  it('the latest operation of a group and the longest wait of its ranks count', () => {
    const changes = {
      1: { operation: 19, collective: 'broadcast', waitedMs: 950 },
      2: { operation: 19, collective: 'reduce', waitedMs: 0 },
    } as const;
    const all = { waitedMs: 449 };
    expect(status({ comms: [{ id: aa, ranks: count(4), all, changes }] }).groups).toMatchObject([
      {
        shares: [{ condition: 'waiting', count: 4, seconds: 1 }],
        operations: { lowest: 17, highest: 19, collective: 'broadcast' },
      },
    ]);
  });

  it('hosts that do not answer are named, and ranks without a communicator are counted', () => {
    const job = { comms: [comm(4, [])], silent: ['h1'] };
    expect(status(job, [], 4)).toMatchObject({ hosts: 2, silent: ['h1'], without: 2 });
    expect(status({ comms: [comm(4, [])] }, [], 3).without).toBe(0);
  });
});
