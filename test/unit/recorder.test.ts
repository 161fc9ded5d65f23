/** The flight recorder: its memory as the agent reads it, its columns, and its tables. */
import { readFileSync } from 'node:fs';
import { deflateSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { parseRecorderAnswer } from '../../control/link/recorder.ts';
import { encodeJson, makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import {
  NO_PEER,
  type RecordedProcess,
  RecordFlag,
  RECORDER_COMMUNICATORS,
  RECORDER_ENTRIES,
  RECORDER_GPUS,
  type RecorderAnswer,
  type RecorderEntry,
} from '../../control/messages/recorder.ts';
import { decodeColumns, encodeColumns } from '../../control/messages/recorder-columns.ts';
import { ProtocolError } from '../../control/messages/protocol-error.ts';
import { EDGE } from '../../worker/agent/edges.ts';
import { CLOCK, CLOCK_BYTES } from '../../worker/agent/gpu-clock.ts';
import {
  answerRecorder,
  COMMUNICATOR,
  COMMUNICATOR_BYTES,
  EDGE_BYTES,
  ENTRY,
  ENTRY_BYTES,
  FIRST_COMMUNICATOR,
  FIRST_ENTRY,
  FIRST_REPLAY,
  HEADER,
  readRecorder,
  RECORDER_BYTES,
  RECORDER_EDGES,
} from '../../worker/agent/recorder.ts';
import { seededRandom } from '../rig/random.ts';
import { entryOf, RecorderMemory } from '../rig/recorded.ts';

const header = readFileSync(new URL('../../native/include/ncclrun.h', import.meta.url), 'utf8').replaceAll(
  /\/\*.*?\*\//gs,
  '',
);

const widths: Readonly<Record<string, number>> = { ncclrunRecorderClock: CLOCK_BYTES };
const lengths: Readonly<Record<string, number>> = {
  NCCLRUN_RECORDER_GPUS: RECORDER_GPUS,
  NCCLRUN_RECORDER_COMMUNICATORS: RECORDER_COMMUNICATORS,
};

/** Offsets of a structure's fields, and its size. */
function layoutOf(name: string): { offsets: Record<string, number>; bytes: number } {
  const [, body = ''] = new RegExp(`typedef struct \\{([^}]*)\\} ${name};`).exec(header) ?? [];
  const offsets: Record<string, number> = {};
  let bytes = 0;
  for (const [, type = '', list = ''] of body.matchAll(
    /^\s*(u?int(?:64|32|16|8)_t|char|ncclrunRecorderClock) ([^;]+);/gm,
  )) {
    const width = type === 'char' ? 1 : (widths[type] ?? Number(/\d+/.exec(type)?.[0]) / 8);
    for (const field of list.split(',')) {
      offsets[field.trim().replace(/\[\w+\]$/, '')] = bytes;
      bytes += width * (lengths[/\[(\w+)\]/.exec(field)?.[1] ?? ''] ?? Number(/\[(\d+)\]/.exec(field)?.[1] ?? 1));
    }
  }
  return { offsets, bytes };
}

describe('the layout of the memory', () => {
  test('entries and communicators have the layout of ncclrun.h', () => {
    expect(layoutOf('ncclrunRecorderEntry')).toEqual({ offsets: ENTRY, bytes: ENTRY_BYTES });
    expect(layoutOf('ncclrunRecorderCommunicator')).toEqual({ offsets: COMMUNICATOR, bytes: COMMUNICATOR_BYTES });
    expect(layoutOf('ncclrunRecorderEdge')).toEqual({ offsets: EDGE, bytes: EDGE_BYTES });
    expect(header).toContain(`#define NCCLRUN_RECORDER_EDGES ${RECORDER_EDGES}\n`);
    expect(layoutOf('ncclrunRecorderClock')).toEqual({ offsets: CLOCK, bytes: CLOCK_BYTES });
    expect(layoutOf('ncclrunRecorder')).toMatchObject({ offsets: HEADER, bytes: FIRST_ENTRY });
    expect(FIRST_COMMUNICATOR + RECORDER_COMMUNICATORS * COMMUNICATOR_BYTES).toBe(FIRST_REPLAY);
  });

  test('numbers and flags are those of ncclrun.h', () => {
    expect(header).toContain(`#define NCCLRUN_RECORDER_BYTES ${RECORDER_BYTES}\n`);
    expect(header).toContain(`#define NCCLRUN_RECORDER_ENTRIES ${RECORDER_ENTRIES}\n`);
    expect(header).toContain(`#define NCCLRUN_RECORDER_COMMUNICATORS ${RECORDER_COMMUNICATORS}\n`);
    const flags = Array.from(header.matchAll(/^\s*ncclrunRecord(\w+) = (\d+)/gm), ([, name = '', bit]) => [
      `${name.charAt(0).toLowerCase()}${name.slice(1)}`,
      Number(bit),
    ]);
    expect(Object.fromEntries(flags)).toEqual(RecordFlag);
  });
});

describe('reading the memory', () => {
  test('the last operations come with the communicators that they name', () => {
    const memory = new RecorderMemory(2);
    for (let sequence = 1; sequence <= 5; sequence++) memory.write(entryOf(sequence));
    expect(readRecorder(memory.bytes, 2)).toEqual({
      rank: 2,
      pid: 4711,
      recorded: 5,
      oldest: 1,
      unlisted: 0,
      communicators: [{ index: 0, id: '0000000000abcdef', epoch: 0, size: 4, rank: 2, name: 'group0' }],
      entries: [entryOf(4), entryOf(5)],
    });
  });

  test('a ring that has wrapped has its last 4096 operations', () => {
    const memory = new RecorderMemory(0);
    for (let sequence = 1; sequence <= RECORDER_ENTRIES + 3; sequence++) memory.write(entryOf(sequence));
    const read = readRecorder(memory.bytes, RECORDER_ENTRIES);
    expect(read).toMatchObject({ recorded: RECORDER_ENTRIES + 3, oldest: 4 });
    expect(read?.entries.map(({ sequence }) => sequence)).toEqual(
      Array.from({ length: RECORDER_ENTRIES }, (_, index) => index + 4),
    );
  });

  test('an operation that is being written is left out', () => {
    const memory = new RecorderMemory(0).write(entryOf(1)).write(entryOf(2));
    memory.bytes.writeBigUInt64LE(0n, FIRST_ENTRY + ENTRY_BYTES);
    expect(readRecorder(memory.bytes, 9)?.entries).toEqual([entryOf(1)]);
  });

  test('operations of a communicator whose index another one took are left out', () => {
    const memory = new RecorderMemory(0).write(entryOf(1)).write(entryOf(2)).write(entryOf(3));
    memory.communicator(0, { rank: 0, size: 2, first: 3 });
    expect(readRecorder(memory.bytes, 9)?.entries).toEqual([entryOf(3)]);
  });

  test.each<[string, Partial<RecorderEntry>]>([
    ['a collective that there is not', { collective: 10 }],
    ['a type that there is not', { call: 12 }],
    ['an algorithm that there is not', { algorithm: 200 }],
    ['a protocol that there is not', { protocol: 3 }],
    ['a communicator that there is not', { communicator: 9 }],
    ['a time above 2^63', { endedNs: 2 ** 63 }],
  ])('an operation with %s is left out', (_what, changes) => {
    const memory = new RecorderMemory(0).write(entryOf(1, changes)).write(entryOf(2));
    expect(readRecorder(memory.bytes, 9)?.entries).toEqual([entryOf(2)]);
  });

  test('stamps of a GPU are times of the host, whatever its clock', () => {
    const flags = RecordFlag.onGpu + RecordFlag.gpuStamp;
    const entry = entryOf(1, { flags, startedNs: 0, endedNs: 0 });
    const memory = new RecorderMemory(0).write(entry).write(entryOf(2, { flags, startedNs: 0, endedNs: 0 }));
    const offset = -1_760_000_000_000_000_000n;
    const call = BigInt(entry.enqueuedNs) - offset;
    memory.clock(0, offset).stamp(1, call + 3000n, call + 9000n);
    memory.stamp(2, call + 3000n, call + 9000n);
    const second = FIRST_ENTRY + ENTRY_BYTES;
    memory.bytes.writeUInt16LE(3, second + ENTRY.startedNs + 6); // of an operation that had the entry before
    const now = 2_000_000_000;
    expect(readRecorder(memory.bytes, 9, now)).toMatchObject({
      gpuErrorNs: 500 + now * 100e-6,
      entries: [
        { startedNs: entry.enqueuedNs + 3000, endedNs: entry.enqueuedNs + 9000 },
        { startedNs: 0, endedNs: 0 },
      ],
    });
  });

  test('two readings of a clock take its drift into account', () => {
    const entry = entryOf(1, { flags: RecordFlag.onGpu + RecordFlag.gpuStamp });
    // A GPU whose clock loses 20 microseconds in a second.
    const memory = new RecorderMemory(0).write(entry).clock(0, 0n, [
      [1_000_000_000, 0n, 100],
      [11_000_000_000, 200_000n, 300],
    ]);
    memory.stamp(1, 6_000_000_000n, 21_000_000_000n);
    const [read] = readRecorder(memory.bytes, 9, 21_000_000_000)?.entries ?? [];
    expect(read).toMatchObject({ startedNs: 6_000_100_000, endedNs: 21_000_400_000 });
    expect(readRecorder(memory.bytes, 9, 21_000_000_000)?.gpuErrorNs).toBe(700);
  });

  test('replays come from the ring of their GPU, those of earlier communicators are left out', () => {
    const flags = RecordFlag.onGpu + RecordFlag.gpuStamp + RecordFlag.replay + RecordFlag.captured;
    const memory = new RecorderMemory(0).write(entryOf(1)).clock(3, 50n);
    const wraps = RECORDER_ENTRIES + 10;
    for (let sequence = 1; sequence <= wraps; sequence++)
      memory.replay(3, entryOf(sequence, { flags, stream: 0, lastPeer: sequence === wraps ? 7 : 0 }), 1000n, 2000n);
    const read = readRecorder(memory.bytes, 3, 5000);
    expect(read?.replays).toMatchObject([{ recorded: wraps, oldest: 11 + 64 }]);
    const times = { enqueuedNs: 1050, startedNs: 1050, endedNs: 2050, lastPeer: NO_PEER, flags };
    expect(read?.replays?.[0]?.entries).toMatchObject([
      { ...times, sequence: wraps - 2 },
      { ...times, sequence: wraps - 1 },
    ]);
    expect(read?.entries).toEqual([entryOf(1)]);
  });

  test('readRecorder returns null for unwritten memory, another version, and too few bytes', () => {
    const other = new RecorderMemory(0).write(entryOf(1));
    other.bytes[HEADER.version] = 1;
    const short = new RecorderMemory(0).bytes.subarray(1);
    for (const bytes of [new Uint8Array(RECORDER_BYTES), other.bytes, short]) expect(readRecorder(bytes, 9)).toBeNull();
  });

  test('memory of random bytes gives only what the columns can carry', () => {
    const random = seededRandom(7);
    for (let round = 0; round < 20; round++) {
      const memory = new RecorderMemory(0);
      for (let sequence = 1; sequence <= 40; sequence++) memory.write(entryOf(sequence));
      for (let hit = 0; hit < 400; hit++) memory.bytes[FIRST_ENTRY + random(40 * ENTRY_BYTES)] = random(256);
      for (let hit = 0; hit < 400; hit++)
        memory.bytes[FIRST_COMMUNICATOR + random(4 * COMMUNICATOR_BYTES)] = random(256);
      memory.clock(0, 5n);
      for (let hit = 0; hit < 100; hit++) memory.bytes[HEADER.clocks + random(CLOCK_BYTES)] = random(256);
      for (let hit = 0; hit < 400; hit++) memory.bytes[FIRST_REPLAY + random(40 * ENTRY_BYTES)] = random(256);
      const sent: RecorderAnswer[] = [];
      const query = makeFrame(FrameKind.recorder, { request: 3, payload: encodeJson({ last: 256, full: [] }) });
      answerRecorder(query, [memory.bytes], { of: () => null }, ({ payload, request }) => {
        expect(request).toBe(3);
        sent.push(parseRecorderAnswer(payload));
      });
      expect(sent.map(({ type }) => type)).toEqual(['process', 'end']);
      const entries = sent.flatMap((answer) => (answer.type === 'process' ? decodeColumns(answer.entries) : []));
      for (const answer of sent)
        if (answer.type === 'process') for (const ring of answer.replays ?? []) decodeColumns(ring.entries);
      expect(entries.length).toBeLessThanOrEqual(40);
    }
  });
});

describe('columns of operations', () => {
  const strange: Partial<RecorderEntry> = {
    startedNs: 5,
    endedNs: 0,
    count: 2 ** 52,
    operation: 0xffff_ffff,
    peer: 0,
    lastPeer: 0xffff_fffe,
    flags: 0xffff,
  };

  test('columns give back what was encoded', () => {
    const entries = [entryOf(1), entryOf(2, strange), entryOf(3), entryOf(9, { startedNs: 0 })];
    expect(decodeColumns(encodeColumns(entries))).toEqual(entries);
    expect(decodeColumns(encodeColumns([]))).toEqual([]);
  });

  test('an operation takes about 12 bytes', () => {
    const random = seededRandom(1);
    const entries = Array.from({ length: RECORDER_ENTRIES }, (_, index) => {
      const enqueuedNs = index * 50_000 + random(9000);
      return entryOf(index + 1, {
        enqueuedNs,
        startedNs: enqueuedNs + random(900),
        endedNs: enqueuedNs + 900 + random(30_000),
        hash: random(65_536),
      });
    });
    expect((encodeColumns(entries).length * 3) / 4 / RECORDER_ENTRIES).toBeLessThan(14);
  });

  test('damaged columns are refused with a sentence and never crash', () => {
    const random = seededRandom(3);
    const whole = Buffer.from(encodeColumns([entryOf(1), entryOf(2, strange)]), 'base64');
    for (let round = 0; round < 300; round++) {
      const bytes = Buffer.from(whole.subarray(0, 1 + random(whole.length)));
      bytes[random(bytes.length)] = random(256);
      try {
        decodeColumns(bytes.toString('base64'));
      } catch (error) {
        expect(error).toBeInstanceOf(ProtocolError);
      }
    }
  });

  test.each<[string, Uint8Array, RegExp]>([
    ['too many operations', Buffer.of(0x81, 0x20), /4097 operations/],
    ['an end too early', Buffer.of(1, 2), /end too early/],
    ['bytes after the end', Buffer.of(0, 0), /after the last column/],
    ['an endless number', Buffer.alloc(20, 0xff), /more than 64 bits/],
    ['a sequence below zero', Buffer.concat([Buffer.of(1, 1), Buffer.alloc(16)]), /sequence is -1/],
  ])('columns with %s are refused', (_what, bytes, sentence) => {
    expect(() => decodeColumns(deflateSync(bytes).toString('base64'))).toThrow(sentence);
  });

  test('an answer of an agent is refused where a field is out of range', () => {
    const process: RecordedProcess = {
      rank: 0,
      pid: 1,
      gpu: null,
      recorded: 0,
      oldest: 0,
      unlisted: 0,
      communicators: [],
      entries: encodeColumns([]),
    };
    expect(parseRecorderAnswer(encodeJson({ type: 'process', ...process }))).toEqual({ type: 'process', ...process });
    expect(() => parseRecorderAnswer(encodeJson({ type: 'process', ...process, pid: -1 }))).toThrow(ProtocolError);
    expect(() => parseRecorderAnswer(Buffer.from('{'))).toThrow(/no JSON/);
  });
});
