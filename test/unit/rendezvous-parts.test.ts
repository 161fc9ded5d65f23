/** The parts of the rendezvous, each by itself: who has contributed, who is missing, which messages wait. */
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { Clock } from '../../control/clock.ts';
import { NcclResult } from '../../control/messages/bootstrap.ts';
import { ByteWriter } from '../../control/messages/bytes.ts';
import type { Key } from '../../control/messages/key.ts';
import { describeKey } from '../../control/messages/key.ts';
import { JOIN_ROUND, LeftHow, SHRINK_ROUND, SPLIT_ROUND } from '../../control/messages/rendezvous.ts';
import { ALL_GONE, readSplit } from '../../control/messages/split.ts';
import { Collector, type PendingGather } from '../../control/rendezvous/collector.ts';
import { listRanks } from '../../control/rendezvous/failure.ts';
import { LateWatch } from '../../control/rendezvous/late.ts';
import { Mailbox } from '../../control/rendezvous/mailbox.ts';
import { ownBytes, RecentMap } from '../../control/rendezvous/memory.ts';
import { Roster } from '../../control/rendezvous/roster.ts';
import { desertion, resultOf } from '../../control/rendezvous/rules.ts';
import { splitParts } from '../../control/rendezvous/split.ts';
import { newKey, peerInfo } from '../rig/rendezvous.ts';

const gathers = newKey(3);
const short = describeKey({ ...gathers, round: JOIN_ROUND });
const shrink = (number: number): Key => ({ ...gathers, round: SHRINK_ROUND + number - 1 });
const entry = (rank: number, bytes: Uint8Array = new Uint8Array(0), host = rank) => ({
  rank,
  jobRank: rank,
  pid: 10 + rank,
  bytes,
  host,
});

/** What a rank contributes to a shrink; null leaves out all that are gone. */
function leavingOut(...ranks: number[] | [null]): Uint8Array {
  const writer = new ByteWriter().i32(0).i32(0).bytes(peerInfo());
  if (ranks[0] === null) return writer.u32(ALL_GONE).finish();
  writer.u32(ranks.length);
  for (const rank of ranks) writer.u32(rank ?? 0);
  return writer.finish();
}

function collector(epoch = 0): Collector {
  return new Collector({ epoch, hostName: (host) => `n${host}` });
}

const differenceOf = (one: Uint8Array, other: Uint8Array): string => {
  const all = collector();
  all.add(shrink(1), 4, entry(0, one));
  const outcome = all.add(shrink(1), 4, entry(2, other));
  return outcome.type === 'failed' ? outcome.failure.sentence : outcome.type;
};

const sentenceOf = (epoch: number): string => {
  const outcome = collector(5).add({ ...gathers, epoch }, 2, entry(0));
  return outcome.type === 'failed' ? outcome.failure.sentence : outcome.type;
};

describe('a collector', () => {
  test('a key completes with the last contribution', () => {
    const all = collector();
    expect(all.add(gathers, 2, entry(0)).type).toBe('waiting');
    expect(all.waiting()).toHaveLength(1);
    const outcome = all.add(gathers, 2, entry(1));
    expect(outcome.type).toBe('complete');
    if (outcome.type !== 'complete') return;
    expect([...outcome.gather.hosts]).toEqual([0, 1]);
    expect([all.waiting(), all.get(gathers)]).toEqual([[], undefined]);
  });

  test.each([
    [0, 4, 'rank 4 (n4, pid 14) is no rank of round 3 of'],
    [0, 0, 'rank 0 (n0, pid 10) is no rank of round 3 of'],
    [2 ** 20 + 1, 0, 'rank 0 (n0, pid 10) is no rank of round 3 of'],
    [4, 4, 'rank 4 (n4, pid 14) is no rank of round 3 of'],
  ])('a communicator of %i ranks has no rank %i', (size, rank, sentence) => {
    const outcome = collector().add(gathers, size, entry(rank));
    if (outcome.type !== 'failed') throw new TypeError(outcome.type);
    expect(outcome.failure).toEqual({
      result: NcclResult.invalidArgument,
      sentence: `${sentence} ${short} with ${size} ranks`,
    });
    expect(outcome.gather).toBeNull();
  });

  test('communicators of 1 and of 2^20 ranks are possible', () => {
    expect(collector().add(gathers, 1, entry(0)).type).toBe('complete');
    expect(collector().add(gathers, 2 ** 20, entry(2 ** 20 - 1)).type).toBe('waiting');
  });

  test('ranks of another epoch learn of the epoch', () => {
    expect(sentenceOf(4)).toBe('restarted: rank 0 (n0, pid 10) speaks of epoch 4, the job is in epoch 5 now');
    expect(sentenceOf(6)).toBe('rank 0 (n0, pid 10) speaks of epoch 6, the job is in epoch 5');
    expect(sentenceOf(5)).toBe('waiting');
  });

  test('a shrink completes without the ranks that all leave out, and a later one may not need them', () => {
    const all = collector();
    expect(all.add(shrink(1), 3, entry(0, leavingOut(1))).type).toBe('waiting');
    expect(all.add(shrink(1), 3, entry(2, leavingOut(1))).type).toBe('complete');
    const needing = all.add(shrink(2), 3, entry(0, leavingOut(2)));
    if (needing.type !== 'failed') throw new TypeError(needing.type);
    expect(needing.failure).toEqual({
      result: NcclResult.invalidUsage,
      sentence: `shrink 2 of ${short} needs rank 1, which an earlier one left out: shrink the communicator that the earlier one made`,
    });
    expect(all.add(shrink(3), 3, entry(0, leavingOut(1, 2))).type).toBe('complete');
    expect(all.add(shrink(4), 3, entry(0, leavingOut(1))).type).toBe('failed');
    expect(all.add(shrink(5), 3, entry(0, leavingOut(null))).type).toBe('waiting');
    expect(all.add(gathers, 3, entry(0)).type).toBe('waiting');
  });

  test('ranks that leave out different ranks learn of each other', () => {
    const differ = `the ranks left out differ in shrink 1 of ${short}: rank 2 (n2, pid 12) leaves out`;
    expect(differenceOf(leavingOut(1), leavingOut(3))).toBe(`${differ} 3, rank 0 (n0, pid 10) leaves out 1`);
    expect(differenceOf(leavingOut(1), leavingOut())).toBe(`${differ} nobody, rank 0 (n0, pid 10) leaves out 1`);
    expect(differenceOf(leavingOut(null), leavingOut())).toBe(
      `${differ} nobody, rank 0 (n0, pid 10) leaves out all that are gone`,
    );
    expect(differenceOf(leavingOut(1), leavingOut(1))).toBe('waiting');
  });

  test('a shrink without all that are gone completes when it waits for them alone', () => {
    const all = collector();
    all.add(shrink(1), 3, entry(0, leavingOut(null)));
    expect(all.completeWithout(shrink(1), (rank) => rank === 1)).toBeNull();
    expect(all.completeWithout(shrink(1), () => true)?.leftOut).toEqual([1, 2]);
    expect(all.completeWithout(shrink(1), () => true)).toBeNull();
    expect(all.add(shrink(2), 3, entry(0, leavingOut(1))).type).toBe('failed');
    all.add(shrink(3), 3, entry(0, leavingOut(1, 2)));
    all.add(gathers, 2, entry(0));
    expect(all.completeWithout(gathers, () => true)).toBeNull();
  });

  test('a failed key stays failed, and a forgotten one begins anew', () => {
    const all = collector();
    all.add(gathers, 2, entry(0));
    all.forget(gathers);
    expect(all.add(gathers, 2, entry(1)).type).toBe('waiting');
    const failure = { result: NcclResult.remoteError, sentence: 'lost' };
    expect(all.fail(gathers, failure)?.entries.size).toBe(1);
    expect(all.fail(gathers, failure)).toBeUndefined();
    expect(all.add(gathers, 2, entry(0))).toEqual({ type: 'failed', gather: null, failure });
  });

  test('a host has 32 MiB of contributions that wait, with a KiB each beside their bytes', () => {
    const all = collector();
    const half = new Uint8Array(16 * 2 ** 20 - 1024);
    all.add(gathers, 4, entry(0, half, 0));
    all.add({ ...gathers, round: 4 }, 2, entry(1, half, 0));
    expect(() => all.add({ ...gathers, round: 5 }, 2, entry(0, new Uint8Array(0), 0))).toThrow(
      'more than 33.6 MB of contributions that wait for others',
    );
    all.add({ ...gathers, round: 5 }, 2, entry(0, new Uint8Array(0), 1));
    all.add({ ...gathers, round: 4 }, 2, entry(0, new Uint8Array(0), 1));
    expect(() => all.add({ ...gathers, round: 6 }, 2, entry(0, half, 0))).not.toThrow();
  });
});

test('readSplit takes ascending ranks of the communicator without the own one', () => {
  expect(readSplit(leavingOut(0, 2), 3, 1)).toMatchObject({ colour: 0, order: 0, leftOut: [0, 2], withoutGone: false });
  expect(readSplit(leavingOut(null), 3, 1)).toMatchObject({ leftOut: [], withoutGone: true });
  for (const [ranks, size] of [
    [[1], 3],
    [[3], 3],
    [[2, 2], 3],
    [[2, 0], 3],
  ] as const)
    expect(() => readSplit(leavingOut(...ranks), size, 1)).toThrow(`of ${size} cannot be left out here`);
});

function gather(size: number, jobRanks: readonly number[], leftOut: readonly number[] = [], since = 0): PendingGather {
  const entries = new Map(jobRanks.map((jobRank, rank) => [rank, { ...entry(rank), jobRank }]));
  return { key: gathers, size, entries, leftOut, withoutGone: false, hosts: new Set(), since };
}

const roster = (): Roster => new Roster([0, 0, 1, 1], (host) => `n${host}`);

describe('the roster', () => {
  test('a key is doomed when too few ranks are left', () => {
    const all = roster();
    expect([all.anyOver, all.isDoomed(gather(9, []), [])]).toEqual([false, false]);
    all.end(3, 'rank 3 ended');
    expect([all.anyOver, all.isOver(3), all.isOver(2)]).toEqual([true, true, false]);
    expect(all.isDoomed(gather(4, [0, 1]), [])).toBe(true);
    expect(all.isDoomed(gather(4, [0, 1], [3]), [])).toBe(false);
    expect(all.isDoomed(gather(3, [0, 1]), [])).toBe(false);
    expect(all.isDoomed(gather(3, []), [])).toBe(false);
    expect(all.isDoomed(gather(4, [3, 0]), [])).toBe(false);
    expect(all.isDoomed(gather(4, [-1, 0]), [])).toBe(false);
    expect(all.isDoomed(gather(3, [0]), [3])).toBe(true);
    expect(all.isDoomed(gather(3, [0]), [2])).toBe(false);
  });

  test('the rank that ended first and has not come is to blame', () => {
    const all = roster();
    all.endHost(1, 'was on n1, which was lost');
    all.end(0, 'rank 0 ended');
    const doom = (of: PendingGather, needed: number[] = []) => all.describeDoom(of, needed);
    expect(doom(gather(4, [0]))).toEqual({
      rank: 2,
      sentence: `rank 2 was on n1, which was lost without joining round 3 of ${short}: of its 4 ranks 0 has come`,
    });
    expect(doom(gather(3, [0, 1])).sentence).toBe(
      `rank 2 was on n1, which was lost without joining round 3 of ${short}: of its 3 ranks 0, 1 have come`,
    );
    expect(doom(gather(4, [0, 1, 2])).rank).toBe(3);
    expect(doom(gather(3, [0, 1, 2])).rank).toBe(2);
    expect(doom(gather(3, [0]), [0, 3]).rank).toBe(3);
    all.end(1, 'rank 1 ended');
    all.endHost(0, 'was lost');
    expect(doom(gather(9, []), [1]).sentence).toContain('rank 1 ended without joining');
  });

  test('missing ranks have hosts where the communicator is numbered as the job', () => {
    const all = roster();
    expect(all.missingFrom(gather(4, [0, 1], [3]))).toEqual({ missing: ['rank 2 (n1)'], ranks: [2] });
    expect(all.missingFrom(gather(4, [-1, 1]))).toEqual({ missing: ['rank 2 (n1)', 'rank 3 (n1)'], ranks: [2, 3] });
    expect(all.missingFrom(gather(4, [1, 0]))).toEqual({ missing: ['rank 2', 'rank 3'], ranks: [] });
    expect(all.missingFrom(gather(3, [0, 1]))).toEqual({ missing: ['rank 2'], ranks: [] });
  });
});

const bytes = (value: number, length = 1) => new Uint8Array(length).fill(value);

const message = (tag: number) => ({ key: gathers, from: 0, to: 1, tag });

describe('messages before there is a data path', () => {
  const MAX = 64 * 2 ** 20;

  test('they keep their order by sender, receiver and tag', () => {
    const box = new Mailbox<string>();
    expect([box.post(message(1), bytes(1)), box.post(message(1), bytes(2))]).toEqual(['stored', 'stored']);
    expect(box.fetch(message(2), 'x')).toBe('waiting');
    expect([box.fetch(message(1), 'y'), box.fetch(message(1), 'y')]).toEqual([bytes(1), bytes(2)]);
    expect(box.fetch(message(1), 'y')).toBe('waiting');
    expect(box.fetch(message(1), 'z')).toBe('waiting');
    expect([box.post(message(1), bytes(3)), box.post(message(1), bytes(3))]).toEqual([
      { waiter: 'y' },
      { waiter: 'z' },
    ]);
    expect(box.post(message(1), bytes(4))).toBe('stored');
    expect(box.end(gathers.id, gathers.epoch + 1)).toEqual([]);
    expect(box.end(gathers.id, gathers.epoch)).toEqual(['x']);
    expect(box.fetch(message(1), 'y')).toBe('waiting');
  });

  test('the mailbox has 64 MiB, of which each message and each waiter takes 2 KiB beside its bytes', () => {
    const box = new Mailbox<string>();
    const large = bytes(0, MAX - 2 * 2048);
    expect(box.post(message(1), large)).toBe('stored');
    expect(box.post(message(1), bytes(0))).toBe('full');
    expect(box.fetch(message(2), 'a')).toBe('waiting');
    expect(box.fetch(message(3), 'b')).toBe('full');
    expect(box.post(message(2), bytes(0))).toEqual({ waiter: 'a' });
    expect(box.fetch(message(2), 'a')).toBe('waiting');
    box.dropWaiters((waiter) => waiter === 'none');
    expect(box.fetch(message(3), 'b')).toBe('full');
    box.dropWaiters((waiter) => waiter === 'a');
    expect(box.fetch(message(3), 'b')).toBe('waiting');
    box.fetch(message(1), 'c');
    expect(box.post(message(4), large)).toBe('stored');
    expect(box.end(gathers.id, gathers.epoch)).toEqual(['b']);
    expect(box.post(message(1), bytes(0, MAX - 2048))).toBe('stored');
  });

  test('only the waiters that are gone are dropped', () => {
    const box = new Mailbox<string>();
    for (const waiter of ['a', 'b', 'a', 'c']) box.fetch(message(1), waiter);
    box.dropWaiters((waiter) => waiter === 'a');
    expect([box.post(message(1), bytes(0)), box.post(message(1), bytes(0))]).toEqual([
      { waiter: 'b' },
      { waiter: 'c' },
    ]);
    expect(box.post(message(1), bytes(5))).toBe('stored');
    box.dropWaiters(() => true);
    expect(box.fetch(message(1), 'd')).toEqual(bytes(5));
  });
});

test('late keys are reported after a time, and then at six times that', () => {
  let [now, timer]: [number, (() => void) | null] = [0, null];
  const clock: Clock = {
    now: () => now,
    after(milliseconds, run) {
      const due = now + milliseconds;
      timer = () => {
        now = due;
        run();
      };
      return { cancel: () => (timer = null) };
    },
  };
  const fire = (): void => timer?.();
  const waiting: PendingGather[] = [];
  const reports: (readonly [number, number])[] = [];
  const watch = new LateWatch(
    clock,
    1000,
    () => waiting,
    (late, seconds) => reports.push([late.size, seconds]),
  );
  watch.watch();
  expect(timer).toBeNull();
  waiting.push(gather(1, [], [], 0), gather(2, [], [], 500));
  watch.watch();
  watch.watch();
  fire();
  expect([now, reports]).toEqual([1000, [[1, 1]]]);
  fire();
  expect([now, reports.at(-1)]).toEqual([1500, [2, 1]]);
  fire();
  expect([now, reports.at(-1)]).toEqual([7000, [1, 7]]);
  fire();
  fire();
  expect([now, reports.at(-1)]).toEqual([13_000, [1, 13]]);
  watch.close();
  expect(timer).toBeNull();
});

test('the rules of a round', () => {
  expect([resultOf(LeftHow.differed), resultOf(LeftHow.died)]).toEqual([
    NcclResult.invalidUsage,
    NcclResult.remoteError,
  ]);
  const finalized = { result: NcclResult.invalidUsage, sentence: 'rank 1 (n0)' };
  const died = { result: NcclResult.remoteError, sentence: 'rank 2 died' };
  const gone = [
    [1, finalized],
    [2, died],
  ] as const;
  const split = { ...gathers, round: SPLIT_ROUND };
  expect(desertion({ ...gathers, round: JOIN_ROUND }, gone, () => true)).toBeNull();
  expect(desertion(gathers, gone, () => true)).toEqual({ rank: 2, how: LeftHow.died, failure: died });
  expect(desertion(gathers, gone, (rank) => rank === 1)).toBeNull();
  expect(desertion(split, gone, () => false)).toBeNull();
  expect(desertion(split, gone, () => true)).toEqual({
    rank: 1,
    how: LeftHow.differed,
    failure: {
      result: NcclResult.invalidUsage,
      sentence: `the ranks’ calls differ: rank 1 (n0) called ncclCommFinalize where others called ncclCommSplit (split 1 of ${short})`,
    },
  });
});

const own = (length: number, of: number): boolean => {
  const bytes = new Uint8Array(new ArrayBuffer(of), 0, length);
  return ownBytes(bytes) !== bytes;
};

test('a map of recent entries forgets the oldest, and bytes of large buffers are copied', () => {
  const recent = new RecentMap<number>(2);
  for (const [name, value] of [
    ['a', 1],
    ['b', 2],
    ['a', 3],
    ['c', 4],
  ] as const)
    recent.set(name, value);
  expect(['a', 'b', 'c'].map((name) => recent.get(name))).toEqual([3, undefined, 4]);
  expect([own(10, 16_404), own(10, 16_405), own(10_000, 36_384)]).toEqual([false, true, false]);
});

test('lists of ranks name the first eight', () => {
  const ranks = [0, 1, 2, 3, 4, 5, 6, 7];
  expect([listRanks([]), listRanks([4]), listRanks(ranks)]).toEqual(['nobody', '4', '0, 1, 2, 3, 4, 5, 6, 7']);
  expect(listRanks([...ranks, 8, 9])).toBe('0, 1, 2, 3, 4, 5, 6, 7 and 2 more');
});

const wants = (colour: number, order: number): Uint8Array =>
  new ByteWriter().i32(colour).i32(order).bytes(peerInfo()).u32(0).finish();

test('a split makes a communicator of each colour, in the order that the ranks want', () => {
  const parent = {
    id: Array.from({ length: 128 }, (_, at) => String.fromCodePoint(at)).join(''),
    epoch: 2,
    round: SPLIT_ROUND,
  };
  const parts = splitParts(parent, [
    wants(7, 1),
    wants(-1, 0),
    wants(7, 0),
    wants(3, 0),
    new Uint8Array(0),
    wants(7, 1),
  ]);
  expect(parts.map(({ ranks }) => ranks)).toEqual([[2, 0, 5], [3]]);
  const seed = Buffer.alloc(12);
  seed.writeUInt32LE(2, 0);
  seed.writeUInt32LE(SPLIT_ROUND, 4);
  seed.writeInt32LE(7, 8);
  const random = createHash('sha256').update(Buffer.from(parent.id, 'latin1')).update(seed).digest().subarray(0, 16);
  const [first] = parts;
  expect(first?.key).toEqual({
    id: parent.id.slice(0, 16) + random.toString('latin1') + parent.id.slice(32),
    epoch: 2,
    round: JOIN_ROUND,
  });
});
