/** How an agent joins the signs of a process's end, and which engines wait in vain. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { readCalls } from '../../worker/agent/calls.ts';
import type { Engine } from '../../worker/agent/engine.ts';
import { ProcessExits } from '../../worker/agent/process-exits.ts';
import { isInOperation, isStalled } from '../../worker/agent/stall.ts';
import { SLOT } from '../../worker/agent/slot-layout.ts';
import { TELEMETRY_BYTES } from '../../worker/agent/telemetry.ts';
import { newKey } from '../rig/rendezvous.ts';

function engine(jobRank: number, telemetry: Uint8Array[] = []): Engine {
  const hello = { protocol: 1, pid: 7, rank: jobRank, jobId: 'j', engineVersion: '1' };
  return {
    connection: jobRank,
    pid: 7,
    hello,
    jobRank,
    telemetry,
    recorder: new Uint8Array(0),
    gone: false,
    goodbye: null,
  };
}

const status = (exitCode: number) => ({ exitCode, signalNumber: null, time: 0 });

function exits(isRank: boolean) {
  const seen: string[] = [];
  const all = new ProcessExits({
    gone: ({ jobRank }, { phrase, cleanly }) => seen.push(`${jobRank} ${phrase}, cleanly ${cleanly}`),
    closed: ({ jobRank }) => seen.push(`${jobRank} closed`),
    isRank: () => isRank,
  });
  return { all, seen };
}

describe('the end of a process', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  const lost = '1 ended without leaving the communicator, cleanly null';

  test.each([
    [status(0), '1 exited with status 0 without leaving the communicator, cleanly true'],
    [status(3), '1 exited with status 3 without leaving the communicator, cleanly false'],
    [{ exitCode: null, signalNumber: 9, time: 0 }, '1 was killed by SIGKILL, cleanly false'],
  ])('the report %j says how it ended, whichever sign comes first', (exited, phrase) => {
    const first = exits(true);
    first.all.engineDied(engine(1));
    first.all.rankEnded(2, status(0));
    expect(first.seen).toEqual([]);
    first.all.rankEnded(1, exited);
    expect(first.seen).toEqual([phrase]);
    expect(first.all.ended).toBe(2);
    const second = exits(true);
    second.all.rankEnded(1, exited);
    second.all.engineDied(engine(1));
    expect(second.seen).toEqual([phrase]);
    vi.advanceTimersByTime(1000);
    expect([first.seen, second.seen]).toEqual([[phrase], [phrase]]);
  });

  test.each([
    [true, 500],
    [false, 20],
  ])('a process without a report is gone in time (a rank: %s, after %d ms)', (isRank, ms) => {
    const { all, seen } = exits(isRank);
    all.engineDied(engine(1));
    vi.advanceTimersByTime(ms - 1);
    expect(seen).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(seen).toEqual([lost]);
  });

  test('no timer decides once the report is there', () => {
    const { all, seen } = exits(true);
    all.engineDied(engine(1));
    all.engineDied(engine(2));
    all.endReported(1);
    all.endReported(3);
    all.engineDied(engine(3));
    vi.advanceTimersByTime(1000);
    expect(seen).toEqual(['2 ended without leaving the communicator, cleanly null']);
    all.rankEnded(1, status(0));
    all.rankEnded(3, status(0));
    expect(seen).toHaveLength(3);
  });

  test('a process that closes its connection and lives on is closed after 100 ms', () => {
    const { all, seen } = exits(true);
    all.engineClosed(engine(1));
    vi.advanceTimersByTime(99);
    expect(seen).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(seen).toEqual(['1 closed']);
  });

  test('a process that closes its connection and dies is gone', () => {
    const { all, seen } = exits(false);
    const one = engine(1);
    all.engineClosed(one);
    all.engineDied(one);
    all.engineClosed(one);
    vi.advanceTimersByTime(1000);
    expect(seen).toEqual([lost]);
  });

  test('nothing is reported after the end', () => {
    const { all, seen } = exits(true);
    all.engineDied(engine(1));
    all.engineClosed(engine(2));
    all.close();
    vi.advanceTimersByTime(1000);
    expect(seen).toEqual([]);
  });
});

const key = newKey();
const WAITS_FOR_NOBODY = 0xffff_ffff;

/** A page as an engine writes it, with one communicator in its first slot. */
function page({
  state = 1,
  operation = 7,
  completed = 7,
  agoMs = 0,
  waitingFor = WAITS_FOR_NOBODY,
  epoch = key.epoch,
}) {
  const bytes = Buffer.alloc(TELEMETRY_BYTES);
  bytes.writeUInt32LE(0x5054_434e, 0);
  bytes.writeUInt32LE(3, 4);
  const slot = bytes.subarray(512);
  Buffer.from(key.id, 'latin1').copy(slot, 0, 16, 24);
  slot.writeUInt32LE(2, SLOT.rank);
  slot.writeUInt32LE(4, SLOT.size);
  slot.writeBigUInt64LE(BigInt(operation), 16);
  slot.writeBigUInt64LE(BigInt(completed), 24);
  slot.writeBigUInt64LE(process.hrtime.bigint() - BigInt(agoMs) * 1_000_000n, 40);
  slot.writeUInt32LE(state, SLOT.state);
  slot.writeUInt32LE(waitingFor, 72);
  slot.writeUInt32LE(epoch, SLOT.epoch);
  return bytes;
}

const [IDLE, RUNNING, WAITING, FAILED] = [1, 3, 4, 5];

describe('an engine without progress', () => {
  test.each([
    [{ state: WAITING, agoMs: 400 }, true, true, true],
    [{ state: WAITING, agoMs: 100 }, true, false, false],
    [{ state: RUNNING, operation: 8, agoMs: 400 }, true, true, true],
    [{ state: IDLE, agoMs: 400 }, false, false, false],
    [{ state: FAILED, operation: 8, agoMs: 400 }, false, false, true],
    [{ state: FAILED, agoMs: 0 }, false, false, true],
  ])('%o is in an operation: %s, stalled: %s, stuck: %s', (state, busy, stalled, stuck) => {
    const pages = [page(state)];
    expect(isInOperation(pages, key)).toBe(busy);
    expect(isStalled(pages, key)).toBe(stalled);
    expect(readCalls(engine(2, pages), key, 2)?.stuck).toBe(stuck);
  });

  test('another epoch is another communicator', () => {
    const pages = [page({ state: WAITING, agoMs: 400, epoch: key.epoch + 1 })];
    expect(isInOperation(pages, key)).toBe(false);
    expect(isStalled(pages, key)).toBe(false);
    expect(readCalls(engine(2, pages), key, 2)).toBeNull();
  });

  test('it says for whom it waits', () => {
    expect(readCalls(engine(2, [page({ waitingFor: 3 })]), key, 2)?.waitingFor).toBe(3);
    expect(readCalls(engine(2, [page({})]), key, 2)?.waitingFor).toBeNull();
  });
});

function called(hashed: number, [collective, call, bytes]: readonly [number, number, number] = [0, 0, 0]) {
  const whole = page({});
  const slot = whole.subarray(512);
  slot.writeBigUInt64LE(BigInt(hashed), SLOT.hashed);
  for (let index = 0; index < 36; index++) slot.writeUInt16LE(100 + index, SLOT.recentHashes + 2 * index);
  slot.writeUInt32LE(collective, SLOT.hashedCollective);
  slot.writeUInt32LE(call, SLOT.hashedCall);
  slot.writeBigUInt64LE(BigInt(bytes), SLOT.hashedBytes);
  return readCalls(engine(2, [whole]), key, 2);
}

describe('the calls of a rank', () => {
  test.each([
    [0, [0, 0, 0], 'no collective'],
    [1, [0, 7, 64], 'allReduce of 16 float32 with sum'],
    [1, [0, 0x207, 64], 'allReduce of 16 float32 with max'],
    [1, [0, 0x508, 64], 'allReduce of 8 float64 with pre-multiplied sum'],
    [1, [0, 0x607, 64], 'allReduce of 16 float32 with ?'],
    [1, [1, 2, 64], 'allGather of 4 int32'],
    [1, [3, 0x30001, 64], 'broadcast of 64 uint8, root 3'],
    [1, [4, 0x20307, 64], 'reduce of 16 float32 with min, root 2'],
    [1, [8, 7, 64], 'sendRecv of 16 float32'],
    [1, [9, 7, 64], 'a barrier'],
    [1, [77, 99, 64], 'an unknown collective of 64 ?'],
  ] as const)('after %d calls, %j reads: %s', (hashed, last, text) => {
    expect(called(hashed, last)?.last).toBe(text);
  });

  test('the newest hashes come first, without the one that may be overwritten', () => {
    expect(called(2)?.hashes).toEqual([102, 101]);
    expect(called(36)).toMatchObject({ count: 36, rank: 2, pid: 7 });
    expect(called(36)?.hashes).toHaveLength(35);
    expect(called(40)?.hashes).toEqual(Array.from({ length: 35 }, (_, back) => 100 + ((40 - back) % 36)));
  });
});
