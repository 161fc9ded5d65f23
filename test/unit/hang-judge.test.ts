/** Who is blamed for a hang, from what the agents say of their ranks. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { HostRankPositions, RankPosition } from '../../control/messages/hang.ts';
import { HangJudge } from '../../launcher/job/hang.ts';
import type { Hang } from '../../launcher/model/hang.ts';
import { hangText } from '../../launcher/report/hang-text.ts';

const inside: RankPosition = {
  jobRank: 0,
  pid: 70,
  gpu: null,
  rank: 0,
  operation: 17,
  inside: true,
  collective: 'allReduce',
  bytes: 4096,
  waitedMs: 31_260,
  stopped: false,
  waitsFor: null,
};

function rank(jobRank: number, change: Partial<RankPosition> = {}): RankPosition {
  return { ...inside, jobRank, rank: jobRank, ...change };
}

function on(ranks: readonly RankPosition[], change: Partial<HostRankPositions> = {}): HostRankPositions {
  return { communicator: '00000000000000aa', epoch: 0, size: 4, ranks, ...change };
}

/** Rank 0 alone, inside of that operation. */
function at(operation: number): HostRankPositions {
  return on([rank(0, { operation })], { size: 1 });
}

/** Ranks 0 and 1 are on a, 2 and 3 on b. */
function judge(hosts: readonly string[] = ['a', 'b']): { judge: HangJudge; found: Hang[]; asked: string[] } {
  const [found, asked]: [Hang[], string[]] = [[], []];
  const options = {
    hosts: () => hosts,
    send: (host: string) => void asked.push(host),
    hostOf: (jobRank: number) => (jobRank < 2 ? 'a' : 'b'),
    found: (hang: Hang) => void found.push(hang),
  };
  return { judge: new HangJudge(options), found, asked };
}

/** What is found when a stalls and b answers. */
function verdict(a: readonly RankPosition[], b: readonly RankPosition[]): Hang | undefined {
  const { judge: one, found } = judge();
  one.stalled('a', on(a));
  one.answered('b', on(b));
  return found[0];
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe('a hang', () => {
  it('the launcher asks the other hosts and waits for all', () => {
    const { judge: one, found, asked } = judge(['a', 'b', 'c']);
    one.stalled('a', on([rank(0), rank(1)]));
    expect(asked).toEqual(['b', 'c']);
    one.answered('b', on([rank(2), rank(3)]));
    expect(found).toEqual([]);
    one.answered('c', on([]));
    expect(found).toHaveLength(1);
  });

  it('a hang names the call, the waiting ranks and the time', () => {
    expect(
      verdict([rank(0), rank(1, { waitedMs: 30_000 })], [rank(2), rank(3, { inside: false, operation: 16 })]),
    ).toEqual({
      communicator: '00000000000000aa',
      operation: 17,
      call: 'allReduce of 4096 bytes',
      late: ['rank 3 on b (pid 70) has begun none since operation 16 (allReduce), which it has ended'],
      waits: [],
      waiting: '0-2',
      seconds: 31.3,
    });
    expect(verdict([rank(0, { collective: 'barrier' }), rank(1)], [rank(2), rank(3)])).toMatchObject({
      call: 'a barrier',
    });
  });

  it.each([
    [{ stopped: true }, 'is stopped (SIGSTOP, or a debugger)'],
    [{ operation: 16 }, 'is still in operation 16 (allReduce)'],
    [{ operation: 0, inside: false }, 'has begun no operation'],
  ])('the launcher blames a rank with %o: it %s', (change, reason) => {
    const hang = verdict([rank(1), rank(0, change)], [rank(2), rank(3)]);
    expect(hang?.late).toEqual([`rank 0 on a (pid 70) ${reason}`]);
  });

  it('the launcher blames nobody if all ranks are inside or have ended the operation', () => {
    expect(verdict([rank(0), rank(1)], [rank(2), rank(3, { inside: false })])).toMatchObject({
      late: [],
      waiting: '0-2',
    });
  });

  it('a hang names whom each rank waits for, and the NICs of both hosts', () => {
    const nics = { own: 'eth0', peer: 'eth1' };
    const hang = verdict(
      [rank(0, { waitsFor: { rank: 2, nics } }), rank(1, { waitsFor: { rank: 0, nics: null } })],
      [rank(2), rank(3)],
    );
    const waits = ['rank 0 on a waits for rank 2 on b (eth0 to eth1)', 'rank 1 on a waits for rank 0 on a'];
    expect(hang).toMatchObject({ late: [], waits });
    expect(hang === undefined ? '' : hangText(hang)).toMatch(
      /^no rank is behind, and none makes progress: .*: rank 0 on a waits for rank 2 on b \(eth0 to eth1\); rank 1 on a waits for rank 0 on a$/,
    );
  });

  it('the launcher counts ranks that have left the communicator', () => {
    expect(verdict([rank(0), rank(1)], [rank(2)])?.late).toEqual(['1 of its ranks have left it']);
  });

  it('the launcher reports nothing if no rank is inside an operation any more', () => {
    expect(verdict([rank(0, { inside: false })], [])).toBeUndefined();
  });

  it('the launcher reports the latest operation that a rank is inside of', () => {
    const hang = verdict([rank(0, { operation: 18, bytes: 8 }), rank(1)], [rank(2), rank(3)]);
    expect(hang).toMatchObject({ operation: 18, call: 'allReduce of 8 bytes', waiting: '0' });
  });

  it('the launcher waits a second for a silent host, and names it', () => {
    const { judge: one, found } = judge();
    one.stalled('a', on([rank(0), rank(1)]));
    vi.advanceTimersByTime(999);
    expect(found).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(found[0]?.late).toEqual(['b does not say where its ranks are']);
  });

  it('the launcher reports each operation of a communicator once', () => {
    const { judge: one, found } = judge(['a']);
    for (const operation of [17, 17, 16, 18]) one.stalled('a', at(operation));
    one.stalled('a', { ...at(17), epoch: 1 });
    expect(found.map(({ operation }) => operation)).toEqual([17, 18, 17]);
  });

  it('the launcher reports no hang after the job has ended', () => {
    const { judge: one, found } = judge();
    one.stalled('a', on([rank(0)]));
    one.close();
    vi.advanceTimersByTime(2000);
    expect(found).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('the launcher takes a second stalled host as an answer', () => {
    const { judge: one, found, asked } = judge();
    one.stalled('a', on([rank(0), rank(1)]));
    one.stalled('b', on([rank(2), rank(3)]));
    expect(asked).toEqual(['b']);
    expect(found).toHaveLength(1);
  });
});
