/** Who is blamed for a hang where ranks are few or many, idle or not, and known or not: both sides of each border. */
import { describe, expect, it } from 'vitest';
import { blamedRanks, judgeHangs } from '../../launcher/hang/judge.ts';
import { ended, history, readings } from '../rig/positions.ts';
import type { Change, PlantedJob } from '../rig/positions.ts';

const id = '00000000000000aa';
const count = (length: number): number[] => Array.from({ length }, (_, index) => index);
const changesOf = (ranks: readonly number[], change: Change): Record<number, Change> =>
  Object.fromEntries(ranks.map((rank) => [rank, change]));

/** Kind, blamed ranks and confidence of each verdict. */
function verdicts(job: PlantedJob, moved: readonly number[] = []) {
  return judgeHangs(...readings(job, moved)).map(({ verdict: { kind, blamed, confidence } }) => [
    kind,
    blamed.map(({ ranks }) => ranks).join(),
    confidence,
  ]);
}

/** Four ranks of two hosts. */
const four = (changes: Record<number, Change>, rest: Partial<PlantedJob> = {}): PlantedJob => ({
  comms: [{ id, ranks: count(4), changes }],
  ...rest,
});

describe('ranks that keep others waiting', () => {
  it('a rank that has ended the operation is not blamed beside one that has not begun it', () => {
    const changes = { 1: ended(17), 3: ended(16) };
    expect(verdicts(four(changes))).toEqual([['stuck-outside', '3', 'likely']]);
    expect(verdicts(four(changes, { processes: { 1: { state: 'stopped' } } }))).toEqual([
      ['stuck-outside', '3', 'likely'],
    ]);
  });

  it('a rank that makes progress in the operation is late beside one that has not begun it', () => {
    expect(verdicts(four({ 3: ended(16) }), [2])).toEqual([['stuck-outside', '2,3', 'likely']]);
  });

  it('a rank that makes progress in the operation is not blamed beside a stopped one', () => {
    const stopped = { processes: { 1: { state: 'stopped' } } } as const;
    expect(verdicts(four({ 3: ended(16) }, stopped), [2])).toEqual([['stopped', '1,3', 'certain']]);
  });

  it('a rank that has left is named beside a late one', () => {
    const [hang] = judgeHangs(...readings({ comms: [{ id, ranks: count(4), size: 5, changes: { 3: ended(16) } }] }));
    expect(hang?.late).toEqual([
      'rank 3 on h1 (pid 73) has begun none since operation 16 (allReduce), which it has ended',
      '1 of its ranks has left it',
    ]);
  });

  it.each([
    [1, 1, 'the positions of 1 rank are not known'],
    [2, 1, 'the positions of 2 ranks are not known'],
    [1, 0, '1 of its ranks has left it'],
    [2, 0, '2 of its ranks have left it'],
  ])('where no answer has %i ranks, and %i positions were omitted, %s', (missing, omitted, sentence) => {
    const comms = [{ id, ranks: count(3), size: 3 + missing }];
    const [hang] = judgeHangs(...readings({ comms, omitted, ranksPerHost: 4 }));
    expect(hang?.late).toEqual([sentence]);
    expect(hang?.verdict.kind).toBe(omitted > 0 ? 'unknown' : 'left');
  });
});

/** The first ranks are in operation 17, all others have ended 16. */
const ahead = (size: number, few: number, change: Change = {}): PlantedJob => ({
  comms: [{ id, ranks: count(size), changes: changesOf(count(size).slice(few), { ...ended(16), ...change }) }],
  ranksPerHost: 8,
});

const using = (cpuMs: number) => ({
  ...ahead(8, 1),
  cpuMs: Object.fromEntries(count(8).map((rank) => [rank, cpuMs])),
});

const kinds = (job: PlantedJob) => verdicts(job).map(([kind]) => kind);

describe('a call that few ranks have made', () => {
  it.each([
    ['a quarter is few', 8, 2, 'extra-call'],
    ['more than a quarter is not', 7, 2, 'stuck-outside'],
    ['ten are few', 64, 10, 'extra-call'],
    ['eleven are not', 64, 11, 'stuck-outside'],
  ])('%s: the verdict about %i ranks of which %i are ahead is %s', (_title, size, few, kind) => {
    expect(kinds(ahead(size, few))).toEqual([kind]);
  });

  it('ranks that use a fifth of a CPU are late, and those that use less are idle', () => {
    expect([using(50), using(49)].map(kinds)).toEqual([['late'], ['extra-call']]);
  });

  it('a stopped rank, and one in an earlier operation than the others, make the others late', () => {
    expect(kinds({ ...ahead(8, 1), processes: { 3: { state: 'stopped' } } })).toEqual(['stopped']);
    const [comm] = ahead(8, 1).comms;
    const changes = { ...comm?.changes, 3: ended(15) };
    expect(kinds({ comms: [{ id, ranks: count(8), changes }], ranksPerHost: 8 })).toEqual(['stuck-outside']);
  });

  it('the others are late where a rank is missing', () => {
    const comms = [{ id, ranks: count(8), size: 9, changes: changesOf(count(8).slice(1), ended(16)) }];
    expect(kinds({ comms, ranksPerHost: 8 })).not.toContain('extra-call');
  });
});

describe('ranks whose kernels wait', () => {
  const waiting = (changes: Record<number, Change>, all: Change = { byKernel: true }, size = 4): PlantedJob => ({
    comms: [{ id, ranks: count(size), all, changes: Object.fromEntries(Object.entries(changes)) }],
    ranksPerHost: 8,
  });
  const outside: Change = { ...ended(17), byKernel: false };

  it.each([
    ['one that is outside of the operation is blamed', waiting({ 3: outside }), ['stuck-outside', '3', 'suspected']],
    ['none is blamed where all are inside', waiting({}), ['unknown', '', 'suspected']],
    ['none is blamed where no kernel waits', waiting({ 3: outside }, {}), ['unknown', '', 'suspected']],
    [
      'a rank says for whom it waits',
      waiting({ 0: { byKernel: true, waitsFor: 2 }, 3: outside }),
      ['stuck-inside', '2', 'likely'],
    ],
    [
      'few have launched what the others have queued',
      waiting(changesOf(count(8).slice(1), outside), { byKernel: true }, 8),
      ['extra-call', '0', 'suspected'],
    ],
  ])('%s', (_title, job, expected) => {
    expect(verdicts(job)).toEqual([expected]);
  });
});

describe('connections that wait', () => {
  it('the rank blamed is the one for which another waits longest, and the first of equals', () => {
    const changes = { 0: { waitsFor: 1, waitedMs: 5000 }, 1: { waitsFor: 2, waitedMs: 5000 } };
    expect(verdicts({ comms: [{ id, ranks: count(4), changes }] })).toEqual([['stuck-inside', '1', 'likely']]);
    const later = { ...changes, 1: { waitsFor: 2, waitedMs: 5001 } };
    expect(verdicts({ comms: [{ id, ranks: count(4), changes: later }] })).toEqual([['stuck-inside', '2', 'likely']]);
  });

  it('the sentences about those that wait longest are the evidence', () => {
    const changes = Object.fromEntries(
      count(12).map((rank) => [rank, { waitsFor: (rank + 1) % 12, waitedMs: 9000 - rank }]),
    );
    const [hang] = judgeHangs(...readings({ comms: [{ id, ranks: count(12), changes }], ranksPerHost: 1 }));
    const evidence = hang?.verdict.evidence.flatMap(({ kind, value }) => (kind === 'connection' ? [value] : []));
    expect(evidence).toEqual(hang?.waits.slice(0, 10));
    expect(evidence?.[0]).toBe('rank 0 on h0 waits for rank 1 on h1');
  });
});

describe('calls that differ', () => {
  it('nobody is blamed before a rank has waited for long', () => {
    const all = { hangs: false, calls: history(2, [5, 4]) };
    const job: PlantedJob = {
      comms: [{ id, ranks: count(4), all, changes: { 2: { ...all, calls: history(2, [6, 4]) } } }],
    };
    const [first, second] = readings(job);
    expect([judgeHangs(first, second), blamedRanks(second)]).toEqual([[], []]);
    const [, late] = readings({ comms: [{ id, ranks: count(4), changes: { 3: ended(16), 1: ended(16) } }] });
    expect(blamedRanks(late)).toEqual([1, 3]);
  });
});

it('a job has at most eight verdicts', () => {
  const pairs = count(9).flatMap((pair) => {
    const ranks = [2 * pair, 2 * pair + 1];
    return [
      { id: `a${pair}`.padStart(16, '0'), ranks, changes: { [2 * pair + 1]: ended(16) } },
      { id: `b${pair}`.padStart(16, '0'), ranks, changes: { [2 * pair]: ended(4), [2 * pair + 1]: { operation: 5 } } },
    ];
  });
  expect(verdicts({ comms: pairs.slice(0, 14) })).toHaveLength(7);
  expect(verdicts({ comms: pairs })).toHaveLength(8);
});
