/** What an agent notices about its ranks by itself: hangs, calls that differ, and whom a failing rank may blame. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { decodeCalls } from '../../control/messages/calls.ts';
import type { Frame } from '../../control/messages/frame.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import type { HostRankPositions } from '../../control/messages/hang.ts';
import type { Key } from '../../control/messages/key.ts';
import { decodeLeft } from '../../control/messages/rendezvous-codec.ts';
import { LeftHow } from '../../control/messages/rendezvous.ts';
import { Leavers } from '../../control/rendezvous/leavers.ts';
import { blameFrame, BlameRecords, type BlameRecord } from '../../worker/agent/blame-records.ts';
import { CallWatch } from '../../worker/agent/call-watch.ts';
import type { Engine } from '../../worker/agent/engine.ts';
import { HangReporter } from '../../worker/agent/hang-reporter.ts';
import type { TelemetryPage, TelemetrySlot } from '../../worker/agent/telemetry.ts';
import { newKey } from '../rig/rendezvous.ts';
import { watchedEngine } from '../rig/watched-engine.ts';

const nowNs = (): number => Number(process.hrtime.bigint());

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'Date'] });
});
afterEach(() => {
  vi.useRealTimers();
});

describe('ranks without progress', () => {
  const usual: TelemetrySlot = {
    communicator: 'aa',
    rank: 1,
    size: 4,
    epoch: 2,
    state: 'running',
    operation: 8,
    completed: 7,
    collective: 'allReduce',
    bytes: 64,
    operationHash: '',
    startedNs: 0,
    lastProgressNs: 0,
    waitingFor: 3,
    calls: null,
  };
  function reporter(slot: Partial<TelemetrySlot>, hangAfterMs = 1000) {
    const reports: HostRankPositions[] = [];
    const readings = { reading: 4, inspect: [], arrivals: false, edges: false };
    const pages: TelemetryPage[] = [{ pid: process.pid, jobRank: 5, slots: [{ ...usual, ...slot }] }];
    const hangs: HangReporter = new HangReporter({
      hangAfterMs,
      telemetry: () => pages,
      recorders: () => [],
      gpuOf: (rank) => ({ index: rank, address: null }),
      gpuHealth: () => [],
      stalled: () => void reports.push(hangs.rankPositions(readings)),
      nicsBetween: (_, rank, peer) => ({ own: `nic of ${rank}`, peer: `nic of ${peer}` }),
    });
    return { hangs, reports, pages };
  }
  const ago = (ms: number): number => nowNs() - ms * 1e6;

  test('a rank that hangs is reported once for each operation, with what it waits for', () => {
    const { hangs, reports, pages } = reporter({ lastProgressNs: ago(5000) });
    vi.advanceTimersByTime(124);
    expect(reports).toHaveLength(0);
    vi.advanceTimersByTime(1);
    expect(reports).toMatchObject([
      {
        reading: 4,
        omitted: 0,
        communicators: [
          {
            communicator: 'aa',
            epoch: 2,
            size: 4,
            ranks: [
              {
                jobRank: 5,
                rank: 1,
                operation: 8,
                inside: true,
                hangs: true,
                collective: 'allReduce',
                bytes: 64,
                waitsFor: { rank: 3, nics: { own: 'nic of 1', peer: 'nic of 3' } },
              },
            ],
          },
        ],
        processes: [{ jobRank: 5, pid: process.pid, gpu: { index: 5, address: null }, state: 'running', sleep: null }],
      },
    ]);
    const waited = reports[0]?.communicators[0]?.ranks[0]?.waitedMs ?? 0;
    expect(Math.abs(waited - 5000)).toBeLessThan(1000);
    vi.advanceTimersByTime(1000);
    expect(reports).toHaveLength(1);
    pages[0] = {
      pid: 1,
      jobRank: 5,
      slots: [{ ...usual, operation: 9, collective: null, waitingFor: null, lastProgressNs: ago(5000) }],
    };
    vi.advanceTimersByTime(125);
    expect(reports[1]?.communicators[0]?.ranks).toMatchObject([
      { operation: 9, collective: 'an operation', waitsFor: null },
    ]);
    hangs.stop();
    pages[0] = { pid: 1, jobRank: 5, slots: [{ ...usual, operation: 10 }] };
    vi.advanceTimersByTime(1000);
    expect(reports).toHaveLength(2);
  });

  test('a wait is reported again when it has become twice as long, and a later one of the same operation like the first', () => {
    vi.useFakeTimers();
    const { hangs, reports, pages } = reporter({ state: 'waiting', completed: 8, lastProgressNs: nowNs() });
    const reportsAfter = (ms: number): number => {
      vi.advanceTimersByTime(ms);
      return reports.length;
    };
    expect(reportsAfter(1000)).toBe(1);
    expect([reportsAfter(900), reportsAfter(100), reportsAfter(1900), reportsAfter(100)]).toEqual([1, 2, 2, 3]);
    vi.advanceTimersByTime(1);
    pages[0] = { pid: 1, jobRank: 5, slots: [{ ...usual, state: 'waiting', completed: 8, lastProgressNs: nowNs() }] };
    expect([reportsAfter(999), reportsAfter(125)]).toEqual([3, 4]);
    hangs.stop();
  });

  test.each<[string, Partial<TelemetrySlot>, number]>([
    ['with progress of late', { lastProgressNs: ago(500) }, 0],
    ['that began of late', { lastProgressNs: 0, startedNs: nowNs() + 60e9 }, 0],
    ['outside of operations', { completed: 8 }, 0],
    ['that has failed', { state: 'failed' }, 0],
    ['in a kernel', { state: 'waiting', completed: 8, startedNs: nowNs() + 60e9 }, 1],
  ])('the reporter says of a rank %s (%j) so many reports: %i', (_, slot, count) => {
    const { hangs, reports } = reporter(slot, 8000);
    vi.advanceTimersByTime(999);
    expect(reports).toHaveLength(0);
    vi.advanceTimersByTime(1);
    expect(reports).toHaveLength(count);
    hangs.stop();
  });

  test('the time for which the job was suspended is no wait', () => {
    const { hangs } = reporter({ operation: 9, completed: 8, startedNs: ago(5000), lastProgressNs: ago(5000) });
    const waited = (): number | undefined =>
      hangs.rankPositions({ reading: 1, inspect: [], arrivals: false, edges: false }).communicators[0]?.ranks[0]
        ?.waitedMs;
    expect(waited()).toBeGreaterThanOrEqual(5000);
    hangs.resumed();
    expect(waited()).toBeLessThan(5000);
    hangs.stop();
  });

  test('an answer with more positions than there is room for leaves out idle ones, and stays within a MiB', () => {
    const hashes = Array.from({ length: 35 }, () => 65_535);
    const call = { collective: 'reduceScatter', count: 2 ** 50, type: 'float8e4m3', operator: 'sum', root: null };
    const calls = { count: 2 ** 50, hashes, last: 'x'.repeat(100), call, recent: [] };
    const busy = { ...usual, operation: 2 ** 50, bytes: 2 ** 50, lastProgressNs: ago(5000), calls };
    const { hangs, pages } = reporter({});
    const slots = Array.from({ length: 40 }, () => busy);
    const idle = slots.map((slot) => ({ ...slot, completed: slot.operation }));
    pages.splice(0, 1);
    for (let jobRank = 0; jobRank < 30; jobRank++) pages.push({ pid: 1, jobRank, slots: jobRank < 10 ? idle : slots });
    const answer = hangs.rankPositions({ reading: 1, inspect: [], arrivals: false, edges: false });
    expect(answer.omitted).toBe(200);
    const ranks = answer.communicators.flatMap((one) => one.ranks);
    expect(ranks.filter(({ inside }) => inside)).toHaveLength(800);
    expect(JSON.stringify({ type: 'rankPositions', where: answer }).length).toBeLessThan(1024 * 1024);
    hangs.stop();
  });

  test('hangs are not reported where nobody wants them, and positions are still told', () => {
    const { hangs, reports } = reporter({}, 0);
    vi.advanceTimersByTime(10_000);
    expect(reports).toEqual([]);
    const readings = { reading: 1, inspect: [], arrivals: false, edges: false };
    expect(hangs.rankPositions(readings).communicators).toMatchObject([{ communicator: 'aa', epoch: 2, size: 4 }]);
    const { hangs: idle } = reporter({ completed: 8 }, 0);
    expect(idle.rankPositions(readings).communicators[0]?.ranks).toMatchObject([
      { inside: false, waitedMs: 0, hangs: false },
    ]);
  });
});

describe('calls of ranks', () => {
  const key = newKey();

  const engine = (rank: number, calls: Parameters<typeof watchedEngine>[2] = {}): Engine =>
    watchedEngine(key, rank, calls);

  function watch(engines: readonly Engine[], { wide = false, broken = false, gone = new Leavers() } = {}) {
    const seen: string[] = [];
    const frames: Frame[] = [];
    const members = new Map(engines.map((one) => [one.jobRank, { rank: one.jobRank, engine: one }]));
    const communicator = { key, wide, broken, members, gone };
    const all = [communicator];
    const calls = new CallWatch<typeof communicator>({
      hostName: 'h',
      communicators: () => all,
      sendUp: (frame) => frames.push(frame),
      differ: (_, sentence) => seen.push(sentence),
      stalled: (_, waiter, rank) => seen.push(`${waiter.rank} waits for ${rank}`),
      checked: () => seen.push('checked'),
    });
    calls.start();
    calls.start();
    return { calls, seen, frames, all, communicator };
  }
  const differing =
    'the ranks’ calls differ from the communicator’s collective number 1: rank 0 (h, pid 10) called a barrier; rank 1 (h, pid 11) called a barrier';

  test('a contradiction that is seen twice is reported', () => {
    const { calls, seen, communicator } = watch([engine(0), engine(1, { hash: 8 })]);
    expect(calls.contradictionOf(communicator)).toBe(differing);
    vi.advanceTimersByTime(250);
    expect(seen).toEqual(['checked']);
    vi.advanceTimersByTime(250);
    expect(seen).toEqual(['checked', 'checked', differing]);
    calls.stop();
    vi.advanceTimersByTime(1000);
    expect(seen).toHaveLength(3);
  });

  test('calls that agree, broken communicators and lone ranks are not reported', () => {
    const agreeing = watch([engine(0), engine(1)]);
    const broken = watch([engine(0), engine(1, { hash: 8 })], { broken: true });
    const alone = watch([engine(0, { waiting: true })]);
    vi.advanceTimersByTime(600);
    expect(agreeing.seen).toEqual(['checked', 'checked']);
    expect(broken.seen).toEqual([]);
    expect(alone.seen).toEqual(['checked', 'checked']);
    for (const { calls, frames } of [agreeing, broken, alone]) {
      expect(frames).toEqual([]);
      calls.stop();
    }
  });

  test('the watch ends with the last communicator and starts again', () => {
    const { calls, seen, all, communicator } = watch([engine(0), engine(1)]);
    all.length = 0;
    vi.advanceTimersByTime(250);
    all.push(communicator);
    vi.advanceTimersByTime(1000);
    expect(seen).toEqual([]);
    calls.start();
    vi.advanceTimersByTime(250);
    expect(seen).toEqual(['checked']);
    calls.stop();
  });

  test('the launcher gets one stalled rank of each position, and again only what is new', () => {
    const engines = [
      engine(0, { waiting: true, waitingFor: 2 }),
      engine(1, { waiting: true, waitingFor: 2 }),
      engine(2, { waiting: true }),
      engine(3),
    ];
    const { calls, frames } = watch(engines, { wide: true });
    vi.advanceTimersByTime(1000);
    expect(frames.map(({ kind, subject }) => ({ kind, subject }))).toEqual([
      { kind: FrameKind.calls, subject: 0xffff_ffff },
    ]);
    const [frame] = frames;
    const { all } = decodeCalls(frame?.payload ?? new Uint8Array(0));
    expect(all.map(({ rank, waitingFor }) => [rank, waitingFor])).toEqual([
      [1, 2],
      [2, null],
    ]);
    calls.stop();
  });

  test('ranks that wait for one that is gone are notified', () => {
    const gone = new Leavers();
    const engines = [
      engine(0, { waiting: true, waitingFor: 2 }),
      engine(1, { waiting: true, waitingFor: 3 }),
      engine(2, { waiting: true }),
    ];
    const { calls, seen, communicator } = watch(engines, { gone });
    calls.goneNow(communicator);
    expect(seen).toEqual([]);
    gone.add(2, { result: 6, sentence: 'gone', blame: 2 });
    gone.add(3, { result: 6, sentence: 'gone', blame: 3 });
    calls.goneNow(communicator);
    expect(seen).toEqual(['0 waits for 2', '1 waits for 3', '2 waits for 3']);
    calls.goneNow({ ...communicator, broken: true });
    expect(seen).toHaveLength(3);
    calls.stop();
    const alone = watch([engine(0, { waiting: true })], { gone });
    vi.advanceTimersByTime(250);
    expect(alone.seen).toEqual(['checked', '0 waits for 2', '0 waits for 3']);
    alone.calls.stop();
  });
});

const signal = (signalNumber: number, time = 100) => ({ exitCode: null, signalNumber, time });

const status = (exitCode: number, time = 100) => ({ exitCode, signalNumber: null, time });

describe('whom a failing rank may blame', () => {
  const [key, other] = [newKey(), newKey()];
  const missed = (blame: number): BlameRecord => ({ type: 'missed', key, rank: 3, blame, sentence: 's' });

  test('a rank that fails after its communicator broke blames the first who broke one', () => {
    const records = new BlameRecords();
    expect(records.causeOf(1, status(1))).toBeNull();
    records.add(1, missed(4), 100);
    records.add(1, missed(5), 50);
    expect(records.causeOf(1, status(1))).toEqual(missed(4));
    expect(records.causeOf(1, status(1, 99))).toEqual(missed(5));
    expect(records.causeOf(1, status(1, 49))).toBeNull();
    expect(records.causeOf(1, signal(6))).toEqual(missed(4));
    expect(records.causeOf(1, status(0))).toBeNull();
    expect(records.causeOf(1, signal(9))).toBeNull();
    expect(records.causeOf(2, status(1))).toBeNull();
  });

  test('a rank blames neither itself nor anybody where it is no rank of the job', () => {
    const records = new BlameRecords();
    records.add(4, missed(4), 1);
    records.add(-1, missed(4), 1);
    records.add(4, { type: 'suspected', key, rank: 4 }, 1);
    expect(records.causeOf(4, status(1))).toEqual({ type: 'suspected', key, rank: 4 });
    expect(records.causeOf(-1, status(1))).toBeNull();
    records.add(0, missed(4), 1);
    expect(records.causeOf(0, status(1))).toEqual(missed(4));
  });

  test('five seconds after it has left the communicator, a rank fails for another reason', () => {
    vi.setSystemTime(1_000_000);
    const records = new BlameRecords();
    records.add(1, missed(4), 1);
    records.left(1, other);
    vi.setSystemTime(1_005_000);
    records.left(1, key);
    vi.setSystemTime(1_005_999);
    records.left(1, key);
    vi.setSystemTime(1_020_000); // the agent learns of it late
    expect(records.causeOf(1, status(1, 1_009_999))).toEqual(missed(4));
    expect(records.causeOf(1, status(1, 1_010_000))).toBeNull();
  });

  test.each<[BlameRecord, number, number, number, number]>([
    [missed(4), 4, LeftHow.missed, 3, 0],
    [{ type: 'suspected', key, rank: 3 }, 1, LeftHow.suspected, 3, 0],
    [{ type: 'suspected-here', key, rank: 3, suspect: 8 }, 1, LeftHow.suspected, 8, 2],
  ])('case %#: the launcher gets the record', (record, subject, how, rank, flags) => {
    const frame = blameFrame(1, record);
    expect(frame).toMatchObject({ kind: FrameKind.left, subject, flags });
    const left: { key: Key; rank: number; how: number; reason: string } = decodeLeft(frame.payload);
    expect(left).toEqual({ key, how, rank, reason: record.type === 'missed' ? 's' : '' });
  });
});
