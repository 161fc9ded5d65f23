/** Which verdicts a job has where several reports say what went wrong. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { JobVerdicts } from '../../launcher/job/verdicts.ts';
import type { UntimedEvent } from '../../launcher/job/job-parts.ts';
import type { HostRankPositions } from '../../control/messages/hang.ts';
import { history, readings } from '../rig/positions.ts';
import type { Change } from '../rig/positions.ts';

const id = 'c0ffee'.padStart(16, '0');
const call = { collective: 'allReduce', count: 517, type: 'int32', operator: 'sum', root: null };
const hashes = [5, 4, 3, 2, 1];
const odd: Readonly<Record<number, Change>> = {
  3: { calls: history(5, [9, ...hashes.slice(1)], { ...call, count: 1 }) },
};
const failure = {
  type: 'rank-exit',
  host: 'h1',
  rank: 3,
  pid: 73,
  exitCode: 3,
  outOfMemory: false,
  stderrTail: [],
} as const;

/** Where ranks 0 and 1 of h0, or 2 and 3 of h1 are; rank 3 has called what differs. */
function positions(host: string, changes = odd): HostRankPositions {
  const all = { calls: history(5, hashes, call) };
  const [, reading] = readings({ comms: [{ id, ranks: [0, 1, 2, 3], all, changes }], ranksPerHost: 2 });
  const where = reading.answers.get(host);
  if (where === undefined) throw new Error(`no ranks on ${host}`);
  return where;
}

function job() {
  const kinds: string[] = [];
  const verdicts: JobVerdicts = new JobVerdicts({
    emit(event: UntimedEvent) {
      verdicts.event(event);
      if (event.type === 'verdict')
        kinds.push(`${event.verdict.kind} ${event.verdict.blamed.map(({ ranks }) => ranks).join()}`.trimEnd());
    },
    ranksOn: () => [2, 3],
  });
  return { kinds, verdicts };
}

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it('a mismatch has one verdict once all hosts have said what their ranks called', () => {
  const { kinds, verdicts } = job();
  verdicts.report('h1', { type: 'calls-differ', sentence: 'they differ', where: positions('h1') });
  expect(kinds).toEqual([]);
  verdicts.report('h0', { type: 'calls-differ', sentence: 'they differ', where: positions('h0') });
  expect(kinds).toEqual(['mismatch-size 3']);
  verdicts.report('h0', { type: 'calls-differ', sentence: 'they differ', where: positions('h0') });
  verdicts.event({ type: 'failure', failure, primary: true });
  vi.runAllTimers();
  expect(kinds).toEqual(['mismatch-size 3']);
});

it('a host that says nothing about its calls is waited for only for a moment', () => {
  const { kinds, verdicts } = job();
  verdicts.report('h1', { type: 'calls-differ', sentence: 'they differ', where: positions('h1') });
  vi.runAllTimers();
  expect(kinds).toEqual(['mismatch-size 2,3']);
});

it('a mismatch that blames both sides is reported once more when a third rank decides, and its verdict takes the place of the other', () => {
  const { kinds, verdicts } = job();
  verdicts.report('h1', { type: 'calls-differ', sentence: 'they differ', where: positions('h1') });
  vi.runAllTimers();
  expect(kinds).toEqual(['mismatch-size 2,3']);
  // Ranks 0 and 1 come to the call later, and one after the other.
  const { communicators, ...h0 } = positions('h0');
  const only = (rank: number): HostRankPositions => ({
    ...h0,
    communicators: communicators.map((one) => ({ ...one, ranks: one.ranks.filter((own) => own.rank === rank) })),
  });
  verdicts.report('h0', { type: 'last-position', rank: 0, where: only(0) });
  vi.runAllTimers();
  verdicts.report('h0', { type: 'last-position', rank: 1, where: only(1) });
  vi.runAllTimers();
  expect(kinds).toEqual(['mismatch-size 2,3', 'mismatch-size 3']);
  expect(verdicts.all.map(({ blamed, confidence }) => [blamed.map(({ ranks }) => ranks), confidence])).toEqual([
    [['3'], 'certain'],
  ]);
});

it('a mismatch is not reported again while as many ranks speak for either side', () => {
  const { kinds, verdicts } = job();
  const even = { ...odd, 1: { calls: history(5, [9, ...hashes.slice(1)], { ...call, count: 1 }) } };
  verdicts.report('h1', { type: 'calls-differ', sentence: 'they differ', where: positions('h1', even) });
  vi.runAllTimers();
  verdicts.report('h0', { type: 'calls-differ', sentence: 'they differ', where: positions('h0', even) });
  vi.runAllTimers();
  expect(kinds).toEqual(['mismatch-size 2,3']);
});

it('failed ranks whose last calls differ have the verdict of a mismatch', () => {
  const { kinds, verdicts } = job();
  verdicts.report('h1', { type: 'last-position', rank: 3, where: positions('h1') });
  verdicts.event({ type: 'failure', failure, primary: true });
  verdicts.report('h0', { type: 'last-position', rank: 0, where: positions('h0') });
  vi.runAllTimers();
  expect(kinds).toEqual(['mismatch-size 3']);
});

it('a rank that fails first is named at the end of the job at the latest', () => {
  const { kinds, verdicts } = job();
  verdicts.report('h1', { type: 'last-position', rank: 3, where: positions('h1', {}) });
  verdicts.event({ type: 'failure', failure, primary: true });
  verdicts.event({ type: 'failure', failure: { ...failure, rank: 2 }, primary: false });
  verdicts.close();
  expect(kinds).toEqual(['rank-dead 3']);
  expect(verdicts.all).toHaveLength(1);
});

it('a rank that has left is the only verdict, whatever others say of it', () => {
  const { kinds, verdicts } = job();
  const left = { communicator: id, epoch: 0, rank: 3, jobRank: 3, sentence: 'rank 3 has left' };
  verdicts.report('h0', { type: 'calls-differ', sentence: 'they differ', where: positions('h0', {}) });
  verdicts.report('h1', { type: 'left-behind', left, where: positions('h1', {}) });
  verdicts.report('h0', { type: 'left-behind', left: { ...left, jobRank: -1 }, where: positions('h0', {}) });
  verdicts.event({ type: 'failure', failure, primary: true });
  vi.runAllTimers();
  expect(kinds).toEqual(['left 3']);
});

it('a lost host is a verdict with the ranks that it had', () => {
  const { kinds, verdicts } = job();
  const lost = { type: 'host-lost', host: 'h1', cause: 'silent', silentMs: 5100, detail: '' } as const;
  verdicts.event({ type: 'failure', failure: lost, primary: true });
  vi.runAllTimers();
  expect(kinds).toEqual(['host-silent 2-3']);
});
