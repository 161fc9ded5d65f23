/** What the ranks of one host contribute to keys: what completes there, what goes to the launcher, and when. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ByteWriter } from '../../control/messages/bytes.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import type { Key } from '../../control/messages/key.ts';
import { decodeLeft, decodeMerged } from '../../control/messages/rendezvous-codec.ts';
import { JOIN_ROUND, LeftHow, SHRINK_ROUND } from '../../control/messages/rendezvous.ts';
import { ALL_GONE } from '../../control/messages/split.ts';
import type { Engine, Requester } from '../../worker/agent/engine.ts';
import { PendingGathers } from '../../worker/agent/pending-gathers.ts';
import { newKey, peerInfo } from '../rig/rendezvous.ts';

const key = newKey(3);
const shrink: Key = { ...key, round: SHRINK_ROUND };
const none = new Uint8Array(0);
const WITHOUT_GONE = new ByteWriter().i32(0).i32(0).bytes(peerInfo()).u32(ALL_GONE).finish();
const WITHOUT_3 = new ByteWriter().i32(0).i32(0).bytes(peerInfo()).u32(1).u32(3).finish();

function requester(rank: number, jobRank = rank): Requester {
  const hello = { protocol: 1, pid: 10 + rank, rank: jobRank, jobId: 'j', engineVersion: '1' };
  const engine: Engine = {
    connection: rank,
    pid: 10 + rank,
    hello,
    jobRank,
    telemetry: [],
    recorder: new Uint8Array(0),
    gone: false,
    goodbye: null,
  };
  return { engine, request: 100 + rank, rank };
}
const [zero, one, two] = [requester(0), requester(1), requester(2)];

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const requests = (all: readonly Requester[]): string => all.map(({ request }) => request).join();

function host({ localRanks = 2, here = false, gone = null as ReadonlyMap<number, string> | null } = {}) {
  const seen: string[] = [];
  const gathers = new PendingGathers({
    hostIndex: 0,
    hostName: 'h',
    epoch: 0,
    localRanks: () => localRanks,
    flushAfterMs: 50,
    completesHere: () => here,
    goneHere: () => gone,
    sendUp: ({ kind, subject, payload }) => {
      if (kind === FrameKind.merged) {
        const { size, entries } = decodeMerged(payload);
        seen.push(`merged ${size}: ${entries.map(({ rank, jobRank, pid }) => `${rank}/${jobRank}/${pid}`).join(' ')}`);
      } else {
        const { rank, how, reason } = decodeLeft(payload);
        seen.push(`left ${rank} ${how} ${reason} ${subject}`);
      }
    },
    complete: ({ leftOut }, all) => seen.push(`complete ${requests(all)} without ${leftOut.join() || 'nobody'}`),
    refuse: (all, { sentence }) => seen.push(`refused ${requests(all)} ${sentence.slice(0, 20)}`),
  });
  const add = (by: Requester, size = 4, bytes: Uint8Array = none, of: Key = key): void =>
    gathers.add({ key: of, size, bytes }, by);
  return { gathers, seen, add };
}

describe('contributions of the ranks of a host', () => {
  test('they go to the launcher in one message once every rank has spoken', () => {
    const { gathers, seen, add } = host();
    add(zero);
    expect([seen, gathers.size]).toEqual([[], 1]);
    add(one);
    expect(seen).toEqual(['merged 4: 0/0/10 1/1/11']);
    add(two);
    expect(seen.slice(1)).toEqual(['merged 4: 2/2/12']);
    vi.advanceTimersByTime(1000);
    expect(seen).toHaveLength(2);
    expect(gathers.take(key)).toEqual([zero, one, two]);
    expect([gathers.take(key), gathers.size]).toEqual([[], 0]);
  });

  test('they wait 50 ms for the others of the host', () => {
    const { gathers, seen, add } = host({ localRanks: 3 });
    add(zero);
    vi.advanceTimersByTime(30);
    add(one);
    vi.advanceTimersByTime(19);
    expect(seen).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(seen).toEqual(['merged 4: 0/0/10 1/1/11']);
    gathers.close();
    expect(gathers.size).toBe(0);
  });

  test('ranks that are unknown to the job do not count', () => {
    const { gathers, seen, add } = host({ localRanks: 1 });
    add(requester(0, -1));
    expect(seen).toEqual([]);
    add(requester(1, 0));
    expect(seen).toEqual(['merged 4: 0/-1/10 1/0/11']);
    gathers.close();
  });

  test('a key whose ranks are all here completes here, where that is allowed', () => {
    const { gathers, seen, add } = host({ localRanks: 3, here: true });
    add(zero, 2);
    add(one, 2);
    expect([seen, gathers.size]).toEqual([['complete 100,101 without nobody'], 0]);
    vi.advanceTimersByTime(1000);
    expect(seen).toHaveLength(1);
    const other = host({ localRanks: 3 });
    other.add(zero, 2);
    other.add(one, 2);
    expect(other.seen).toEqual(['merged 2: 0/0/10 1/1/11']);
  });

  test('the launcher judges a contradiction, but what is wrong in itself is refused', () => {
    const { gathers, seen, add } = host({ localRanks: 3, here: true });
    add(requester(7));
    expect([seen, gathers.size]).toEqual([['refused 107 rank 7 (h, pid 17) i'], 0]);
    add(zero);
    add(one, 3);
    expect(seen.slice(1)).toEqual(['merged 4: 0/0/10', 'merged 3: 1/1/11']);
    gathers.close();
  });

  test('everything goes up when a rank has ended', () => {
    const { gathers, seen, add } = host({ localRanks: 3 });
    add(zero);
    add(zero, 4, none, { ...key, round: 4 });
    gathers.flushAll();
    gathers.flushAll();
    expect(seen).toEqual(['merged 4: 0/0/10', 'merged 4: 0/0/10']);
    expect(gathers.keysOf(key).map(({ round }) => round)).toEqual([3, 4]);
    expect(gathers.keysOf(newKey(3))).toEqual([]);
    gathers.close();
  });

  test('a closed host sends nothing any more', () => {
    const { gathers, seen, add } = host({ localRanks: 3 });
    add(zero);
    gathers.close();
    vi.advanceTimersByTime(1000);
    expect([seen, gathers.size]).toEqual([[], 0]);
  });
});

describe('keys that lack a rank', () => {
  test('a rank that leaves fails the keys that it takes part in', () => {
    const { gathers, seen, add } = host({ localRanks: 3 });
    add(zero);
    add(one, 4, none, { ...key, round: 4 });
    gathers.leave(zero.engine, LeftHow.died, (rank) => `${rank} died`);
    expect(seen).toEqual(['merged 4: 0/0/10', 'left 0 2 0 died 4294967295']);
    gathers.leave(two.engine, LeftHow.died, (rank) => `${rank} died`);
    gathers.fail({ ...key, round: 9 }, 1, LeftHow.aborted, 'aborted');
    expect(seen).toHaveLength(2);
    gathers.close();
  });

  test('a key awaits the ranks that have not come and are not left out', () => {
    const { gathers, add } = host({ localRanks: 3 });
    add(zero);
    add(zero, 4, WITHOUT_3, shrink);
    add(zero, 4, WITHOUT_GONE, { ...shrink, round: SHRINK_ROUND + 1 });
    const awaited = (of: Key): boolean[] => [0, 1, 3].map((rank) => gathers.awaits(of, rank));
    expect(awaited(key)).toEqual([false, true, true]);
    expect(awaited(shrink)).toEqual([false, true, false]);
    expect(awaited({ ...shrink, round: SHRINK_ROUND + 1 })).toEqual([false, false, false]);
    expect(awaited({ ...key, round: JOIN_ROUND })).toEqual([false, false, false]);
    gathers.close();
  });

  test('a shrink without all that are gone completes here once they are', () => {
    const gone = new Map<number, string>();
    const { gathers, seen, add } = host({ localRanks: 3, gone });
    add(zero, 3, WITHOUT_GONE, shrink);
    gone.set(2, 'gone');
    expect(gathers.settleGone(shrink)).toBe(false);
    gathers.flushAll();
    vi.advanceTimersByTime(1000);
    expect(seen).toEqual([]);
    gone.set(1, 'gone');
    expect(gathers.settleGone(shrink)).toBe(true);
    expect([seen, gathers.size]).toEqual([['complete 100 without 1,2'], 0]);
    expect(gathers.settleGone(shrink)).toBe(false);
    add(zero, 3, WITHOUT_GONE, { ...shrink, round: SHRINK_ROUND + 1 });
    expect(seen.slice(1)).toEqual(['complete 100 without 1,2']);
  });

  test('a shrink of ranks elsewhere goes to the launcher', () => {
    const { gathers, seen, add } = host({ localRanks: 1 });
    add(zero, 3, WITHOUT_GONE, shrink);
    expect(gathers.settleGone(shrink)).toBe(false);
    expect(seen).toEqual(['merged 3: 0/0/10']);
    gathers.close();
  });

  test('an answer that nobody had to ask for finds its ranks', () => {
    const { gathers, seen, add } = host();
    gathers.expect(key, [zero]);
    expect(gathers.size).toBe(1);
    expect([0, 1].map((rank) => gathers.awaits(key, rank))).toEqual([false, true]);
    add(one);
    vi.advanceTimersByTime(50);
    expect(seen).toEqual(['merged 4: 1/1/11']);
    expect(gathers.take(key)).toEqual([zero, one]);
  });
});

test('a failure of another epoch is refused at once', () => {
  const { gathers, seen, add } = host();
  add(zero, 4, none, { ...key, epoch: 1 });
  expect(seen).toEqual([`refused 100 rank 0 (h, pid 10) s`]);
  expect(gathers.size).toBe(0);
});
