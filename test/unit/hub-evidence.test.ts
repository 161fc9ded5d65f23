/** What the hub of a job makes of agents' frames: evidence about ranks, limits, and failures of whoever waits. */
import { describe, expect, test } from 'vitest';
import type { Clock } from '../../control/clock.ts';
import { NO_RANK } from '../../control/messages/bootstrap.ts';
import { ByteWriter } from '../../control/messages/bytes.ts';
import { encodeCalls } from '../../control/messages/calls.ts';
import { makeFrame } from '../../control/messages/codec.ts';
import { ALL_RANKS, type Frame, FrameKind } from '../../control/messages/frame.ts';
import { describeKey, type Key } from '../../control/messages/key.ts';
import { ProtocolError } from '../../control/messages/protocol-error.ts';
import {
  decodeBroken,
  decodeCompleted,
  decodeKeyFailed,
  encodeLeft,
  encodeRouted,
} from '../../control/messages/rendezvous-codec.ts';
import {
  ENDED_CLEANLY,
  JOIN_ROUND,
  LeftHow,
  NAMES_JOB_RANK,
  RANK_GONE,
  SHRINK_ROUND,
  ROUTED_WANTED,
} from '../../control/messages/rendezvous.ts';
import { ALL_GONE } from '../../control/messages/split.ts';
import { Hub } from '../../control/rendezvous/hub.ts';
import { entry, merged, newKey, peerInfo } from '../rig/rendezvous.ts';

const textOf = ({ kind, subject, flags, payload }: Frame): string => {
  if (kind === FrameKind.keyFailed) return `failed ${decodeKeyFailed(payload).sentence}`;
  if (kind === FrameKind.completed) return `completed ${decodeCompleted(payload).key.round}`;
  if (kind !== FrameKind.broken) return `kind ${kind}`;
  const { rank, sentence } = decodeBroken(payload);
  return `broken by ${rank}, ${subject}, ${flags}: ${sentence}`;
};

/** Two ranks on each host; its clock goes on when the test says so. */
function hubOf(hosts: number, initTimeoutMs: number | null = null) {
  const seen: string[] = [];
  const timers = new Set<{ readonly at: number; readonly run: () => void }>();
  let now = 0;
  const clock: Clock = {
    now: () => now,
    after(milliseconds, run) {
      const timer = { at: now + milliseconds, run };
      timers.add(timer);
      return { cancel: () => void timers.delete(timer) };
    },
  };
  const advance = (milliseconds: number): void => {
    now += milliseconds;
    for (const timer of Array.from(timers)) {
      if (timer.at > now || !timers.delete(timer)) continue;
      timer.run();
    }
  };
  const hub = new Hub({
    epoch: 0,
    hostNames: Array.from({ length: hosts }, (_, host) => `n${host}`),
    rankHosts: Array.from({ length: 2 * hosts }, (_, rank) => Math.floor(rank / 2)),
    send: (host, frame) => seen.push(`${host}: ${textOf(frame)}`),
    join: ({ size }) => seen.push(`join ${size}`),
    late: ({ missing, seconds }) => seen.push(`late ${seconds} s: ${missing.join()}`),
    missing: (rank, message) => seen.push(`missing ${rank}: ${message}`),
    suspected: (rank, suspect) => seen.push(`${rank} suspects ${suspect}`),
    departed: (rank, message) => seen.push(`departed ${rank}: ${message}`),
    timedOut: ({ seconds }) => seen.push(`timed out after ${seconds} s`),
    initTimeoutMs,
    clock,
  });
  const take = (): string[] => seen.splice(0);
  return { hub, take, advance };
}

function left(key: Key, rank: number, how: LeftHow, { reason = 'why', flags = 0, subject = 0 } = {}): Frame {
  return makeFrame(FrameKind.left, { flags, subject, payload: encodeLeft({ key, rank, how, reason }) });
}

const gathers = newKey(3);
const joins: Key = { ...gathers, round: JOIN_ROUND };
const name = describeKey(joins);

const callsOf = (rank: number, hash: number) =>
  makeFrame(FrameKind.calls, {
    payload: encodeCalls(joins, [{ rank, pid: 1, count: 1, hashes: [hash], last: `call ${hash}`, waitingFor: null }]),
  });

/** All four ranks of two hosts have joined. */
function live() {
  const hub = hubOf(2);
  hub.hub.receive(0, merged(joins, 4, [entry(0), entry(1)]));
  hub.hub.receive(1, merged(joins, 4, [entry(2), entry(3)]));
  expect(hub.take()).toEqual(['join 4']);
  expect(hub.hub.size).toBe(1);
  return hub;
}

describe('evidence about ranks', () => {
  test('a rank that made others fail is reported once, if the job has it', () => {
    const { hub, take } = live();
    for (const subject of [2, 2, 4, ALL_RANKS, 3]) hub.receive(0, left(joins, 1, LeftHow.missed, { subject }));
    expect(take()).toEqual(['missing 2: why', 'missing 3: why']);
  });

  test('a suspicion names ranks of the job', () => {
    const { hub, take } = live();
    hub.receive(0, left(joins, 3, LeftHow.suspected, { subject: 1 }));
    hub.receive(0, left(joins, 0, LeftHow.suspected, { subject: 3 }));
    hub.receive(0, left(newKey(), 3, LeftHow.suspected, { subject: 1 }));
    hub.receive(0, left(newKey(), 2, LeftHow.suspected, { subject: 1, flags: NAMES_JOB_RANK }));
    hub.receive(0, left(newKey(), 4, LeftHow.suspected, { subject: 1, flags: NAMES_JOB_RANK }));
    hub.receive(0, left(joins, 3, LeftHow.suspected, { subject: 4 }));
    expect(take()).toEqual(['1 suspects 3', '3 suspects 0', '1 suspects 2']);
  });

  test('the numbers of another communicator are translated to those of the job', () => {
    const { hub, take } = hubOf(2);
    const other = newKey();
    hub.receive(
      1,
      merged(other, 2, [
        { ...entry(0), jobRank: 3 },
        { ...entry(1), jobRank: 2 },
      ]),
    );
    expect(take()).toEqual(['join 2']);
    hub.receive(1, left(other, 0, LeftHow.suspected, { subject: 2 }));
    expect(take()).toEqual(['2 suspects 3']);
  });

  test.each([
    [LeftHow.aborted, 0, 'departed 1: why', 'broken by 1, 1, 0: why'],
    [LeftHow.died, 0, 'departed 1: why; others waited for it', 'broken by 1, 1, 0: why'],
    [LeftHow.died, ENDED_CLEANLY, 'departed 1: why; others waited for it', 'broken by 1, 1, 1: why'],
    [LeftHow.differed, 0, 'departed 1: why', 'broken by 1, 1, 0: why'],
  ])(
    'a rank that leaves by %i with flags %i breaks the communicator on the other host',
    (how, flags, departed, broken) => {
      const { hub, take } = live();
      hub.receive(0, left(joins, 1, how, { flags, subject: 1 }));
      expect(take()).toEqual([departed, `1: ${broken}`]);
      expect(hub.size).toBe(flags === ENDED_CLEANLY ? 1 : 0);
      hub.receive(1, merged(gathers, 4, [entry(2)]));
      expect(take()).toEqual(['1: failed why']);
      hub.close();
    },
  );

  test('nobody is reported where the rank to blame is none of the job', () => {
    const { hub, take } = live();
    hub.receive(0, left(joins, 1, LeftHow.aborted, { subject: ALL_RANKS }));
    expect(take()).toEqual([`1: broken by 1, ${ALL_RANKS}, 0: why`]);
    hub.close();
  });

  test('the hub reports a rank that leaves alone to the hosts whose ranks wait for it', () => {
    const { hub, take } = live();
    const stalled = { rank: 2, pid: 1, count: 1, hashes: [1], last: 'x', waitingFor: 0 };
    const calls = (waitingFor: number | null) =>
      makeFrame(FrameKind.calls, { payload: encodeCalls(joins, [{ ...stalled, waitingFor }]) });
    hub.receive(1, calls(0));
    hub.receive(0, left(joins, 1, LeftHow.abortedAlone, { subject: 1 }));
    expect(take()).toEqual(['departed 1: why']);
    hub.receive(0, left(joins, 0, LeftHow.failedAlone, { subject: ALL_RANKS, reason: 'failed' }));
    expect(take()).toEqual([`1: broken by 0, ${ALL_RANKS}, ${RANK_GONE}: failed`]);
    hub.receive(1, calls(null));
    expect(take().toSorted()).toEqual([
      `1: broken by 0, ${ALL_RANKS}, ${RANK_GONE}: failed`,
      `1: broken by 1, 1, ${RANK_GONE}: why`,
    ]);
    hub.receive(1, merged(gathers, 4, [entry(2), entry(3)]));
    expect(take()).toEqual(['1: failed why']);
    expect(hub.size).toBe(1);
    hub.close();
  });

  test('hosts that finish end the communicator, and their ranks are gone for those that wait', () => {
    const { hub, take } = live();
    const stalled = { rank: 2, pid: 1, count: 1, hashes: [1], last: 'x', waitingFor: 0 };
    hub.receive(1, makeFrame(FrameKind.calls, { payload: encodeCalls(joins, [stalled]) }));
    hub.receive(0, left(joins, ALL_RANKS, LeftHow.finalized));
    hub.receive(0, left(joins, ALL_RANKS, LeftHow.finalized));
    expect(take()).toEqual([`1: broken by 0, ${ALL_RANKS}, ${RANK_GONE}: rank 0 (n0)`]);
    expect(hub.size).toBe(1);
    hub.receive(1, left(joins, ALL_RANKS, LeftHow.finalized));
    expect(hub.size).toBe(0);
    hub.receive(0, merged(joins, 2, [entry(0), entry(1)]));
    expect(take()).toEqual(['join 2']);
  });

  test('calls that differ break the communicator for all hosts', () => {
    const { hub, take } = live();
    hub.receive(0, merged(gathers, 4, [entry(0)]));
    hub.receive(0, callsOf(1, 5));
    hub.receive(1, callsOf(2, 6));
    const sentence =
      'the ranks’ calls differ from the communicator’s collective number 1: rank 1 (n0, pid 1) called call 5; rank 2 (n1, pid 1) called call 6';
    const broken = `broken by ${NO_RANK}, ${ALL_RANKS}, 0: ${sentence}`;
    expect(take()).toEqual([`0: ${broken}`, `1: ${broken}`, `0: failed ${sentence}`]);
    hub.close();
  });
});

const without = (...ranks: number[]): Uint8Array => {
  const writer = new ByteWriter().i32(0).i32(0).bytes(peerInfo()).u32(ranks.length);
  for (const rank of ranks) writer.u32(rank);
  return writer.finish();
};

describe('shrinks', () => {
  const shrink: Key = { ...gathers, round: SHRINK_ROUND };
  const withoutGone = new ByteWriter().i32(0).i32(0).bytes(peerInfo()).u32(ALL_GONE).finish();

  test('a shrink that needs a rank which has ended fails after a moment', () => {
    const { hub, take, advance } = live();
    hub.receive(0, merged(shrink, 4, [entry(0, without(1))]));
    hub.rankEnded(1, 'rank 1 ended');
    advance(250);
    expect(take()).toEqual([]);
    hub.rankEnded(3, 'rank 3 ended');
    advance(250);
    const sentence = `rank 3 ended without joining ${describeKey(shrink)}: of its 4 ranks 0 has come`;
    expect(take()).toEqual([`0: failed ${sentence}`, `missing 3: ${sentence}`]);
    hub.close();
  });

  test('a shrink without all that are gone completes when the others have come', () => {
    const { hub, take, advance } = live();
    hub.receive(0, merged(shrink, 4, [entry(0, withoutGone), entry(1, withoutGone)]));
    hub.rankEnded(3, 'rank 3 ended');
    advance(250);
    expect(take()).toEqual([]);
    hub.receive(1, left(joins, 2, LeftHow.failedAlone, { subject: ALL_RANKS }));
    expect(take()).toEqual(['0: completed 3221225472', 'join 2']);
    hub.close();
  });

  test('a rank that has left in order is still awaited', () => {
    const { hub, take } = live();
    hub.receive(1, left(joins, 2, LeftHow.failedAlone, { subject: ALL_RANKS }));
    hub.receive(0, merged(shrink, 4, [entry(0, withoutGone), entry(1, withoutGone)]));
    expect(take()).toEqual([]);
    hub.receive(1, merged(shrink, 4, [entry(3, withoutGone)]));
    expect(take()).toEqual(['0: completed 3221225472', '1: completed 3221225472', 'join 3']);
    hub.close();
  });
});

describe('limits', () => {
  test('a host contributes for its own ranks only', () => {
    const { hub } = hubOf(2);
    expect(() => hub.receive(0, merged(gathers, 4, [entry(0), entry(2)]))).toThrow(
      new ProtocolError('a contribution of rank 2, which does not run there'),
    );
    expect(() => hub.receive(0, merged(gathers, 4, [{ ...entry(0), jobRank: -1 }, entry(1)]))).not.toThrow();
    hub.close();
  });

  test('a table has at most 15 MiB with 4 bytes for each rank', () => {
    const { hub, take } = hubOf(1);
    const limit = 15 * 2 ** 20 - 8;
    hub.receive(0, merged(gathers, 2, [entry(0, new Uint8Array(limit / 2)), entry(1, new Uint8Array(limit / 2))]));
    expect(take()).toEqual(['0: completed 3']);
    hub.receive(0, merged(gathers, 2, [entry(0, new Uint8Array(limit / 2)), entry(1, new Uint8Array(limit / 2 + 1))]));
    expect(take()).toEqual([
      `0: failed 2 ranks gather 15728641 bytes in round 3 of ${name}, at most 15728640 are possible`,
    ]);
  });

  test('messages that nobody fetches are refused, and then their sender', () => {
    const { hub, take } = hubOf(1);
    const post = (bytes: number): Frame =>
      makeFrame(FrameKind.routed, {
        payload: encodeRouted({ key: gathers, from: 0, to: 1, tag: 2, bytes: new Uint8Array(bytes) }),
      });
    for (let count = 0; count < 4; count++) hub.receive(0, post(15 * 2 ** 20));
    hub.receive(0, post(4 * 2 ** 20 - 5 * 2048));
    expect(take()).toEqual([]);
    for (let count = 0; count < 1000; count++) hub.receive(0, post(1));
    expect(new Set(take())).toEqual(
      new Set([`0: failed too many messages lie unfetched under round 4294967294 of ${name}`]),
    );
    expect(() => hub.receive(0, post(1))).toThrow(new ProtocolError('messages without end, which nobody fetches'));
    const fetch = makeFrame(FrameKind.routed, {
      flags: ROUTED_WANTED,
      payload: encodeRouted({ key: gathers, from: 0, to: 1, tag: 2, bytes: new Uint8Array(0) }),
    });
    hub.receive(0, fetch);
    expect(take()).toEqual([`0: kind ${FrameKind.routed}`]);
  });
});

describe('ranks that do not come', () => {
  test('late keys are named after 10 s, and end after --init-timeout', () => {
    const { hub, take, advance } = hubOf(2, 30_000);
    hub.receive(0, merged(joins, 4, [entry(0), entry(1)]));
    advance(9999);
    expect(take()).toEqual([]);
    advance(1);
    expect(take()).toEqual(['late 10 s: rank 2 (n1),rank 3 (n1)']);
    advance(20_000);
    expect(take()).toEqual(['timed out after 30 s']);
    hub.close();
    advance(1_000_000);
    expect(take()).toEqual([]);
  });

  test('a key without a rank that ended fails after a moment', () => {
    const { hub, take, advance } = hubOf(2);
    hub.receive(0, merged(joins, 4, [entry(0), entry(1)]));
    hub.rankEnded(3, 'rank 3 ended');
    advance(249);
    expect(take()).toEqual([]);
    advance(1);
    const sentence = `rank 3 ended without joining ${name}: of its 4 ranks 0, 1 have come`;
    expect(take()).toEqual([`0: failed ${sentence}`, `missing 3: ${sentence}`]);
    hub.receive(1, merged(joins, 4, [entry(2)]));
    expect(take()).toEqual([`1: failed ${sentence}`]);
  });

  test('a rank that ends while others wait beside it fails the key at once', () => {
    const { hub, take } = hubOf(2);
    hub.receive(0, merged(joins, 4, [entry(0), entry(1)]));
    hub.receive(1, merged(joins, 4, [entry(2)]));
    hub.rankEnded(2, 'rank 2 ended');
    const sentence = `rank 2 ended while others waited in ${name}`;
    expect(take()).toEqual([`0: failed ${sentence}`, `1: failed ${sentence}`, `missing 2: ${sentence}`]);
  });

  test('a lost host fails the keys and communicators that it takes part in', () => {
    const { hub, take } = live();
    hub.receive(0, merged({ ...gathers, round: 4 }, 4, [entry(0)]));
    hub.receive(1, merged(gathers, 4, [entry(2)]));
    hub.hostLost(1, 'was on n1, which was lost');
    expect(take()).toEqual([
      `0: broken by ${ALL_RANKS}, ${ALL_RANKS}, 0: rank 2 was on n1, which was lost`,
      '1: failed rank 2 was on n1, which was lost',
    ]);
    hub.close();
  });
});
