/** The communicators of one host between their engines and the launcher: what each receives when a rank leaves, dies or errs. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { NcclResult, NO_RANK } from '../../control/messages/bootstrap.ts';
import { ByteReader } from '../../control/messages/bytes.ts';
import { ALL_RANKS, FrameKind, type Frame } from '../../control/messages/frame.ts';
import { describeKey, keyName, type Key } from '../../control/messages/key.ts';
import { decodeLeft } from '../../control/messages/rendezvous-codec.ts';
import { ENDED_CLEANLY, LeftHow } from '../../control/messages/rendezvous.ts';
import { decodeSegmentOf } from '../../control/plan/decode.ts';
import { encodeHostPlan } from '../../control/plan/encode.ts';
import { Communicators } from '../../worker/agent/communicators.ts';
import { EngineChannel, type Engine } from '../../worker/agent/engine.ts';
import { communicatorName } from '../../worker/agent/telemetry.ts';
import type { LocalServer, Native, NativeHandle } from '../../worker/engine/native.ts';
import { samplePlan } from '../rig/plans.ts';
import { newKey } from '../rig/rendezvous.ts';
import { losesPeer, waits, watchedEngine } from '../rig/watched-engine.ts';

/** Ranks of the sample plan on its first host. */
const RANKS = [0, 2, 4];
const hostPlan = encodeHostPlan(samplePlan(), 0);
const names: Readonly<Record<number, string>> = {
  [FrameKind.plan]: 'plan',
  [FrameKind.peerGone]: 'peerGone',
  [FrameKind.aborted]: 'aborted',
};

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'Date'] }));
afterEach(() => void vi.useRealTimers());

/** `log`: what the communicators did, one line each. */
function host({ wide = true, key = newKey(), ranks = RANKS }: { wide?: boolean; key?: Key; ranks?: number[] } = {}) {
  const log: string[] = [];
  const engines = ranks.map((rank) => watchedEngine(key, rank));
  const handles = new Map<NativeHandle, string>();
  const made = (name: string): NativeHandle => {
    const handle: NativeHandle = Object.create(null);
    handles.set(handle, name);
    return handle;
  };
  const native: Native = Object.assign(Object.create(null), {
    segmentCreate: (bytes: number) => made(`segment of ${bytes}`),
    sealedMemory: (bytes: Uint8Array, name: string) => made(`${name} of ${bytes.length}`),
    close: (handle: NativeHandle) => log.push(`close ${handles.get(handle)}`),
    segmentAbort(segment: NativeHandle, abort: number, bells: number, count: number, ...why: readonly unknown[]) {
      log.push(`abort ${handles.get(segment)} at ${abort}, ${count} bells at ${bells}: ${why.join(' ')}`);
      return true;
    },
    localServerSend(
      _: LocalServer,
      to: number,
      kind: number,
      __: number,
      ___: number,
      request: number,
      payload: Uint8Array,
      sent: readonly NativeHandle[],
    ) {
      const index = kind === FrameKind.plan ? [`at ${new ByteReader(payload, 'plan').u32('index')}`] : [];
      log.push([`to ${to}:`, names[kind], request, ...index, ...sent.map((handle) => handles.get(handle))].join(' '));
      if (kind === FrameKind.peerGone) log.push(`  ${peerGone(payload)}`);
    },
  });
  const server: LocalServer = Object.create(null);
  const all = new Communicators({
    hostName: 'h',
    native,
    channel: new EngineChannel(native, server),
    sendUp: (frame) => log.push(`up ${described(frame)}`),
    ended: (_, { result, sentence }) => log.push(`ended ${result} ${sentence}`),
    recordBlame: (jobRank, record) => log.push(`${jobRank} blames ${JSON.stringify({ ...record, key: undefined })}`),
    left: (jobRank) => log.push(`${jobRank} left`),
  });
  const requesters = engines.map((engine, index) => ({ engine, request: 100 + index, rank: ranks[index] ?? -1 }));
  all.begin(key, hostPlan, requesters, wide);
  /** What happens during `act`. */
  const during = (act: () => void): string[] => {
    log.length = 0;
    act();
    return log.slice();
  };
  const engine = (rank: number): Engine => engines[ranks.indexOf(rank)] ?? watchedEngine(key, rank);
  return { all, key, engine, engines, log, during };
}

function described({ kind, flags, subject, payload }: Frame): string {
  if (kind !== FrameKind.left) return `frame ${kind}`;
  const { rank, how, reason } = decodeLeft(payload);
  const who = rank === ALL_RANKS ? 'all' : rank;
  const blame = subject === ALL_RANKS ? 'none' : subject;
  const cleanly = flags === ENDED_CLEANLY ? ' cleanly' : '';
  return `${who} ${Object.keys(LeftHow)[how] ?? how}${cleanly}, blame ${blame}: ${reason}`;
}

function peerGone(payload: Uint8Array): string {
  const reader = new ByteReader(payload.subarray(132), 'peer gone');
  const [to, rank, result] = [reader.u32('to'), reader.u32('rank'), reader.u32('result')];
  return `${to} lacks ${rank}: ${result} ${reader.string('sentence')}, waited ${reader.u32('waited')}`;
}

const segment = decodeSegmentOf(hostPlan);
const SEGMENT = `segment of ${segment.segmentBytes}`;
const abort = (why: string) =>
  `abort ${SEGMENT} at ${segment.abortOffset}, 3 bells at ${segment.doorbellOffset}: ${why}`;
const REMOTE = NcclResult.remoteError;
const INVALID = NcclResult.invalidUsage;
const died = { how: LeftHow.died, reason: 'killed', cleanly: false, blame: ALL_RANKS } as const;

describe('a communicator that begins', () => {
  test('every rank gets its plan and the segment in the order of ranks, and the plan is closed', () => {
    const { log, all, key } = host({ ranks: RANKS.toReversed() });
    const handles = `ncclrun-plan of ${hostPlan.length} ${SEGMENT}`;
    expect(log).toEqual([
      `to 0: plan 102 at 0 ${handles}`,
      `to 2: plan 101 at 1 ${handles}`,
      `to 4: plan 100 at 2 ${handles}`,
      `close ncclrun-plan of ${hostPlan.length}`,
    ]);
    expect([all.size, all.has(key), all.has(newKey()), all.failureOf(key)]).toEqual([1, true, false, null]);
  });

  test('a rank whose process is gone gets no plan', () => {
    const { all, key, engine, during } = host();
    engine(2).gone = true;
    const requesters = RANKS.map((rank) => ({ engine: engine(rank), request: rank, rank }));
    const sent = during(() => all.begin({ ...key, epoch: key.epoch + 1 }, hostPlan, requesters, true));
    expect(sent.map((line) => line.slice(0, 5))).toEqual(['to 0:', 'to 4:', 'close']);
    expect(all.size).toBe(2);
  });

  test('the launcher learns whom a lack of memory concerns', () => {
    const { all, key, engine, during } = host();
    expect(during(() => all.couldNotBegin(key, true, 'no memory', engine(4)))).toEqual([
      `close ${SEGMENT}`,
      'up all died, blame 4: no memory',
    ]);
    expect(all.size).toBe(0);
    expect(during(() => all.couldNotBegin(key, true, 'no memory', undefined))).toEqual([
      'up all died, blame none: no memory',
    ]);
    expect(during(() => all.couldNotBegin(key, false, 'no memory', undefined))).toEqual([]);
  });

  test('the NICs between two ranks are those of its plan, where the launcher knows it', () => {
    const { all, key } = host();
    const communicator = communicatorName(key);
    const nics = all.nicsBetween({ communicator, epoch: key.epoch }, 0, 1);
    expect(nics).toEqual({ own: expect.any(String), peer: expect.any(String) });
    expect(all.nicsBetween({ communicator, epoch: key.epoch }, 0, 2)).toBeNull();
    expect(all.nicsBetween({ communicator, epoch: key.epoch + 1 }, 0, 1)).toBeNull();
    expect(all.nicsBetween({ communicator: 'another', epoch: key.epoch }, 0, 1)).toBeNull();
    const narrow = host({ wide: false });
    const query = { communicator: communicatorName(narrow.key), epoch: narrow.key.epoch };
    expect(narrow.all.nicsBetween(query, 0, 1)).toBeNull();
  });
});

describe('ranks that finalize', () => {
  test.each([true, false])('the launcher learns once that all have (wide: %s)', (wide) => {
    const { all, key, engine, during } = host({ wide });
    expect(during(() => all.finalized(key, 0, engine(0)))).toEqual(['0 left']);
    expect(during(() => all.finalized(key, 0, engine(0)))).toEqual([]);
    expect(during(() => all.finalized(key, 2, engine(4)))).toEqual([]);
    expect(during(() => all.finalized(newKey(), 2, engine(2)))).toEqual([]);
    expect([...all.finalizedRanks(key)]).toEqual([[0, 'rank 0 (h, pid 10)']]);
    all.finalized(key, 2, engine(2));
    const last = during(() => all.finalized(key, 4, engine(4)));
    expect(last).toEqual([
      '4 left',
      `close ${SEGMENT}`,
      `ended ${REMOTE} ${describeKey(key)} has ended`,
      ...(wide ? ['up all finalized, blame none: '] : []),
    ]);
    expect([all.size, all.finalizedRanks(key).size]).toEqual([0, 0]);
  });

  test.each([true, false])('those that others keep waiting for are reported once after a moment (wide: %s)', (wide) => {
    const { all, key, engine, during } = host({ wide });
    all.finalized(key, 2, engine(2));
    const reports = wide ? [`up 2 finalized, blame none: rank 2 (h, pid 12)`] : [];
    expect(during(() => vi.advanceTimersByTime(250))).toEqual(reports);
    expect(during(() => vi.advanceTimersByTime(1000))).toEqual([]);
    all.finalized(key, 0, engine(0));
    const more = wide ? [`up 0 finalized, blame none: rank 0 (h, pid 10)`] : [];
    expect(during(() => vi.advanceTimersByTime(250))).toEqual(more);
  });

  test('a rank that waits for one that has finalized learns that their calls differ', () => {
    const { all, key, engine, during } = host({ wide: false });
    waits(engine(0));
    all.finalized(key, 2, engine(2));
    const sentence =
      'the ranks’ calls differ: rank 0 (h, pid 10) called a barrier, which rank 2 (h, pid 12) did not before ncclCommFinalize';
    expect(during(() => vi.advanceTimersByTime(250))).toEqual([
      'to 0: peerGone 0',
      `  0 lacks 2: ${INVALID} ${sentence}, waited 1`,
    ]);
  });
});

describe('a rank that dies', () => {
  test('the other ranks and the launcher learn of it once, and the abort flag is raised', () => {
    const { all, key, engine, during } = host();
    expect(during(() => all.departed(key, 2, engine(2), { ...died, blame: 2 }))).toEqual([
      '2 left',
      `0 blames {"type":"missed","rank":2,"blame":2,"sentence":"killed"}`,
      `4 blames {"type":"missed","rank":2,"blame":2,"sentence":"killed"}`,
      abort(`2 ${REMOTE} killed`),
      'to 0: aborted 0',
      'to 4: aborted 0',
      'up 2 died, blame 2: killed',
    ]);
    expect(all.failureOf(key)).toMatchObject({ result: REMOTE, sentence: 'killed' });
    expect([...all.departedRanks(key)]).toEqual([[2, 'killed']]);
    expect(all.departed(key, 2, engine(2), died)).toBe(false);
    expect(all.departed(key, 4, engine(0), died)).toBe(false);
    expect(during(() => all.departed(key, 0, engine(0), died))).toEqual(['0 left']);
    expect(during(() => all.departed(key, 4, engine(4), { ...died, blame: 4 }))).toEqual([
      '4 left',
      'up 4 died, blame 4: killed',
      `close ${SEGMENT}`,
      `ended ${REMOTE} killed`,
    ]);
    expect(all.departedRanks(key).size).toBe(0);
  });

  test('nobody in particular is to blame for a rank whose own exit shows it', () => {
    const { all, key, engine, during } = host({ wide: false });
    engine(4).gone = true;
    expect(during(() => all.departed(key, 2, engine(2), died))).toEqual([
      '2 left',
      abort(`2 ${REMOTE} killed`),
      'to 0: aborted 0',
    ]);
  });

  test('its process leaves all that it takes part in', () => {
    const { all, key, engine, during } = host();
    const again = { ...key, epoch: key.epoch + 1 };
    all.begin(again, hostPlan, [{ engine: engine(0), request: 1, rank: 0 }], true);
    const left = all.engineGone(engine(0), (rank, of) => ({
      reason: `${rank} of ${of.epoch}`,
      cleanly: false,
      blame: ALL_RANKS,
    }));
    expect(left).toEqual([
      { key, rank: 0 },
      { key: again, rank: 0 },
    ]);
    expect(all.failureOf(key)?.sentence).toBe(`0 of ${key.epoch}`);
    expect([all.has(key), all.has(again)]).toEqual([true, false]);
    expect(during(() => all.engineGone(engine(0), () => died))).toEqual([]);
  });

  test('one that ends with status 0 breaks the communicator only once another rank waits in vain', () => {
    const { all, key, engine, during } = host();
    const cleanly = { ...died, reason: 'exited', cleanly: true, blame: 2 };
    expect(during(() => all.departed(key, 2, engine(2), cleanly))).toEqual([
      '2 left',
      'up 2 died cleanly, blame 2: exited',
    ]);
    expect(all.failureOf(key)?.sentence).toBe('exited');
    expect(during(() => vi.advanceTimersByTime(1000))).toEqual([]);
    waits(engine(4));
    expect(during(() => vi.advanceTimersByTime(249))).toEqual([]);
    expect(during(() => vi.advanceTimersByTime(1)).filter((line) => !line.startsWith('up frame'))).toEqual([
      `0 blames {"type":"missed","rank":2,"blame":2,"sentence":"exited; others waited for it"}`,
      `4 blames {"type":"missed","rank":2,"blame":2,"sentence":"exited; others waited for it"}`,
      abort(`2 ${REMOTE} exited`),
      'to 0: aborted 0',
      'to 4: aborted 0',
    ]);
    expect(during(() => vi.advanceTimersByTime(1000))).toEqual([]);
  });

  test('a deserted communicator that ends is checked no more', () => {
    const { all, key, engine, during } = host();
    all.departed(key, 2, engine(2), { ...died, cleanly: true });
    all.finalized(key, 0, engine(0));
    waits(engine(4));
    all.close();
    expect(during(() => vi.advanceTimersByTime(1000))).toEqual([]);
  });
});

describe('a rank that leaves alone', () => {
  const alone = { how: LeftHow.abortedAlone, reason: 'aborted', cleanly: false, blame: 2 } as const;

  test('the others of the host and the launcher learn of it, and no operation is aborted', () => {
    const { all, key, engine, during } = host();
    expect(during(() => all.departed(key, 2, engine(2), alone))).toEqual([
      '2 left',
      'to 0: peerGone 0',
      `  0 lacks 2: ${REMOTE} aborted, waited 0`,
      'to 4: peerGone 0',
      `  4 lacks 2: ${REMOTE} aborted, waited 0`,
      'up 2 abortedAlone, blame 2: aborted',
    ]);
    expect(all.failureOf(key)).toBeNull();
    expect(all.goneHere(key)).toBeNull();
  });

  test('the launcher learns nothing of a communicator of this host', () => {
    const { all, key, engine, during } = host({ wide: false });
    engine(0).gone = true;
    expect(during(() => all.departed(key, 2, engine(2), alone))).toEqual([
      '2 left',
      'to 4: peerGone 0',
      `  4 lacks 2: ${REMOTE} aborted, waited 0`,
    ]);
    expect([...(all.goneHere(key) ?? [])]).toEqual([[2, 'aborted']]);
    expect(all.goneHere(newKey())).toBeNull();
    const ends = [0, 4].flatMap((rank) => during(() => all.departed(key, rank, engine(rank), alone)));
    expect(ends.slice(-2)).toEqual([`close ${SEGMENT}`, `ended ${REMOTE} ${describeKey(key)} has ended`]);
  });

  test('a rank that others of this host have lost is reported when it leaves', () => {
    const { all, key, engine, during } = host({ wide: false });
    losesPeer(engine(0), 2);
    expect(during(() => all.rankEnded(0))).toEqual(['0 blames {"type":"suspected-here","rank":2,"suspect":2}']);
    expect(during(() => all.rankEnded(7))).toEqual([]);
    expect(during(() => all.departed(key, 2, engine(2), alone)).at(-1)).toBe('up 2 abortedAlone, blame 2: aborted');
    expect(during(() => all.rankEnded(0))).toEqual([
      '0 blames {"type":"missed","rank":2,"blame":2,"sentence":"aborted"}',
    ]);
  });

  test('a rank that another host has is suspected, and one that finalized here is not', () => {
    const wide = host();
    losesPeer(wide.engine(0), 1);
    expect(wide.during(() => wide.all.rankEnded(0))).toEqual(['0 blames {"type":"suspected","rank":1}']);
    const narrow = host({ wide: false });
    losesPeer(narrow.engine(0), 1);
    expect(narrow.during(() => narrow.all.rankEnded(0))).toEqual([]);
    narrow.all.finalized(narrow.key, 2, narrow.engine(2));
    losesPeer(narrow.engine(0), 2);
    expect(narrow.during(() => narrow.all.rankEnded(0))).toEqual([]);
  });
});

describe('a rank whose operation has failed', () => {
  test.each([true, false])('it stays, and ranks that wait for it learn of the failure (wide: %s)', (wide) => {
    const { all, key, engine, during } = host({ wide });
    waits(engine(4));
    const up = wide ? ['up 0 brokenAlone, blame none: failed'] : [];
    expect(during(() => all.brokenAlone(key, 0, engine(0), 'failed'))).toEqual([
      'to 4: peerGone 0',
      `  4 lacks 0: ${REMOTE} failed, waited 1`,
      ...up,
    ]);
    expect(all.departed(key, 0, engine(0), died)).toBe(true);
  });

  test('the rank that it had lost is to blame, where that is known', () => {
    const { all, key, engine, during } = host();
    all.goneElsewhere(key, 1, { result: REMOTE, sentence: 'gone', blame: 1 });
    losesPeer(engine(0), 1);
    expect(during(() => all.brokenAlone(key, 0, engine(0), 'failed'))).toEqual(['up 0 brokenAlone, blame 1: failed']);
    losesPeer(engine(2), 3);
    expect(during(() => all.brokenAlone(key, 2, engine(2), 'failed'))).toEqual([
      'up 2 brokenAlone, blame none: failed',
    ]);
  });

  test('nothing is said of another process, another communicator or one that is broken', () => {
    const { all, key, engine, during } = host();
    expect(during(() => all.brokenAlone(key, 0, engine(2), 'failed'))).toEqual([]);
    expect(during(() => all.brokenAlone(newKey(), 0, engine(0), 'failed'))).toEqual([]);
    all.revoked(key, 2, 'revoked');
    expect(during(() => all.brokenAlone(key, 0, engine(0), 'failed'))).toEqual([]);
  });
});

describe('a communicator that cannot go on', () => {
  const told = ['to 0: aborted 0', 'to 2: aborted 0', 'to 4: aborted 0'];

  test.each([true, false])('a rank that revokes it ends the operations of all, once (wide: %s)', (wide) => {
    const { all, key, during } = host({ wide });
    const up = wide ? ['up 2 revoked, blame none: revoked'] : [];
    expect(during(() => all.revoked(key, 2, 'revoked'))).toEqual([abort(`2 ${REMOTE} revoked`), ...told, ...up]);
    expect(during(() => all.revoked(key, 4, 'revoked'))).toEqual([]);
    expect(during(() => all.revoked(newKey(), 4, 'revoked'))).toEqual([]);
  });

  test.each([true, false])('calls that an engine found to differ break it, once (wide: %s)', (wide) => {
    const { all, key, during } = host({ wide });
    const up = wide ? ['up all differed, blame none: sizes differ'] : [];
    const seen = during(() => all.differed(key, 'sizes differ'));
    expect(seen).toEqual([abort(`${NO_RANK} ${INVALID} sizes differ`), ...told, ...up]);
    expect(during(() => all.differed(key, 'sizes differ'))).toEqual([]);
    expect(during(() => all.differed(newKey(), 'sizes differ'))).toEqual([]);
  });

  test('the telemetry of this host says more of calls that differ than an engine knows', () => {
    const key = newKey();
    const { all, engines, during } = host({ key, wide: false });
    const [first] = watchedEngine(key, 0, { hash: 9 }).telemetry;
    if (first !== undefined) engines[0]?.telemetry.splice(0, 1, first);
    const seen = during(() => all.differed(key, 'sizes differ'));
    expect(seen[0]).toContain('the ranks’ calls differ from the communicator’s collective number 1');
  });

  test('calls that are seen to differ twice break it without any engine', () => {
    const key = newKey();
    const { engines, during } = host({ key, wide: false });
    const [first] = watchedEngine(key, 0, { hash: 9 }).telemetry;
    if (first !== undefined) engines[0]?.telemetry.splice(0, 1, first);
    expect(during(() => vi.advanceTimersByTime(250))).toEqual([]);
    expect(during(() => vi.advanceTimersByTime(250)).slice(1)).toEqual(told);
    expect(during(() => vi.advanceTimersByTime(1000))).toEqual([]);
  });

  test('the launcher reports a rank of another host that broke it', () => {
    const { all, key, during, engine } = host();
    const breach = { rank: 1, result: REMOTE, sentence: 'died', blame: 1 };
    expect(during(() => all.brokenElsewhere(newKey(), breach, false))).toEqual([]);
    expect(during(() => all.brokenElsewhere(key, breach, true))).toEqual([]);
    expect(during(() => all.brokenElsewhere(key, { ...breach, sentence: 'again' }, true))).toEqual([]);
    expect(all.failureOf(key)?.sentence).toBe('died');
    expect(during(() => all.brokenElsewhere(key, { ...breach, blame: ALL_RANKS }, false))).toEqual([
      abort(`1 ${REMOTE} died`),
      ...told,
    ]);
    expect(during(() => all.departed(key, 0, engine(0), died))).toEqual(['0 left']);
  });

  test('ranks that wait for one of another host learn that it is gone', () => {
    const { all, key, during, engine } = host();
    waits(engine(2));
    engine(4).gone = true;
    waits(engine(4));
    const gone = { result: REMOTE, sentence: 'gone', blame: 1 };
    expect(during(() => all.goneElsewhere(newKey(), 1, gone))).toEqual([]);
    expect(during(() => all.goneElsewhere(key, 1, gone))).toEqual([
      'to 2: peerGone 0',
      `  2 lacks 1: ${REMOTE} gone, waited 1`,
    ]);
  });
});

test('closed communicators give their segments back, and nothing is looked at any more', () => {
  const { all, key, engine, during } = host();
  all.finalized(key, 2, engine(2));
  expect(during(() => all.close())).toEqual([`close ${SEGMENT}`]);
  expect([all.size, all.has({ ...key })]).toEqual([0, false]);
  expect(during(() => vi.advanceTimersByTime(1000))).toEqual([]);
  expect(keyName(key)).not.toBe(keyName(newKey()));
});
