import { describe, expect, test } from 'vitest';
import { encodeFrame, encodeHeader, FrameDecoder, makeFrame } from '../../control/messages/codec.ts';
import { FRAME_HEADER_BYTES, FrameKind, MAX_PAYLOAD_BYTES } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import {
  decodeCredit,
  decodeExited,
  decodeSignal,
  decodeSpawned,
  decodeSpawnFailed,
  encodeCredit,
  encodeSignal,
  encodeSpawnFailed,
} from '../../control/messages/payload.ts';
import { ProtocolError } from '../../control/messages/protocol-error.ts';
import { encodeSpawnOrder } from '../../control/messages/spawn-order.ts';
import { ByteReader, ByteWriter } from '../../control/messages/bytes.ts';
import { parseHello, parseOrder, parseReport, parseStart } from '../../control/link/validate.ts';
import { randomBytes, seededRandom } from '../rig/random.ts';
import type { Random } from '../rig/random.ts';

const kinds = Object.values(FrameKind);

function randomFrame(random: Random): Frame {
  return makeFrame(kinds[random(kinds.length)] ?? FrameKind.heartbeat, {
    flags: random(0x10000),
    subject: random(2 ** 32),
    request: random(2 ** 32),
    payload: randomBytes(random(4) === 0 ? 0 : random(300), random),
  });
}

const comparable = (frame: Frame) => ({ ...frame, payload: Buffer.from(frame.payload).toString('hex') });

function decodeAll(bytes: Uint8Array, cut: (left: number) => number): Frame[] {
  const frames: Frame[] = [];
  const decoder = new FrameDecoder((frame) => frames.push(frame));
  for (let offset = 0; offset < bytes.length; ) {
    const length = cut(bytes.length - offset);
    decoder.push(bytes.subarray(offset, offset + length));
    offset += length;
  }
  decoder.end();
  return frames;
}

describe('frames', () => {
  test('frames survive any division of the stream', () => {
    const random = seededRandom(1);
    for (let round = 0; round < 200; round++) {
      const frames = Array.from({ length: 1 + random(10) }, () => randomFrame(random));
      const bytes = Buffer.concat(frames.map((frame) => encodeFrame(frame)));
      const max = 1 + random(round % 2 === 0 ? 5 : 500);
      const decoded = decodeAll(bytes, (left) => 1 + random(Math.min(left, max)));
      expect(decoded.map(comparable)).toEqual(frames.map(comparable));
    }
  });

  test('a payload inside one chunk is a view of it', () => {
    const chunk = encodeFrame(makeFrame(FrameKind.output, { payload: Buffer.from('line\n') }));
    const [frame] = decodeAll(chunk, (left) => left);
    expect(frame?.payload.buffer).toBe(chunk.buffer);
  });

  test('the decoder rejects another version, an unknown kind and a large payload, and stays closed', () => {
    const good = encodeFrame(makeFrame(FrameKind.heartbeat));
    const cases: [(bytes: Buffer) => void, RegExp][] = [
      [(bytes) => bytes.writeUInt8(9, 4), /version is 9, ours is 1/],
      [(bytes) => bytes.write('Welcome to node7'), /text, which is no frame: "Welcome to node7"/],
      [(bytes) => bytes.writeUInt8(0xee, 5), /kind, 238, is unknown/],
      [(bytes) => bytes.writeUInt32LE(MAX_PAYLOAD_BYTES + 1, 0), /announces 16777217 bytes; 16777216 is the most/],
    ];
    for (const [spoil, message] of cases) {
      const bad = Buffer.from(good);
      spoil(bad);
      const seen: Frame[] = [];
      const decoder = new FrameDecoder((frame) => seen.push(frame));
      expect(() => decoder.push(Buffer.concat([good, bad]))).toThrow(message);
      expect(seen).toHaveLength(1);
      expect(() => decoder.push(good)).toThrow(ProtocolError);
      expect(seen).toHaveLength(1);
    }
  });

  test('the decoder reports an end inside a frame', () => {
    const decoder = new FrameDecoder(() => {});
    decoder.push(
      encodeFrame(makeFrame(FrameKind.output, { payload: randomBytes(10, seededRandom(1)) })).subarray(0, 20),
    );
    expect(() => decoder.end()).toThrow(/inside a frame, after 20 of 26 bytes/);
  });

  test('random bytes cause nothing but a ProtocolError', () => {
    const random = seededRandom(7);
    for (let round = 0; round < 2000; round++) {
      const decoder = new FrameDecoder(() => {}, 64);
      try {
        for (let push = 0; push < 5; push++) decoder.push(randomBytes(random(40), random));
      } catch (error) {
        expect(error).toBeInstanceOf(ProtocolError);
      }
    }
  });

  test('encodeHeader rejects an oversized frame', () => {
    const frame = makeFrame(FrameKind.output, { payload: new Uint8Array(MAX_PAYLOAD_BYTES + 1) });
    expect(() => encodeHeader(frame)).toThrow(ProtocolError);
  });
});

const exited = (status: number) => decodeExited(new ByteWriter().i32(status).u64(0).finish());
const text = (value: unknown) => Buffer.from(JSON.stringify(value));

describe('payloads', () => {
  test('payloads decode to the encoded values', () => {
    expect(decodeCredit(encodeCredit(123_456_789_012))).toBe(123_456_789_012);
    expect(decodeSignal(encodeSignal(15))).toBe(15);
    expect(decodeSpawnFailed(encodeSpawnFailed({ errno: 2, step: 6 }))).toEqual({ errno: 2, step: 6 });
    const spawned = new ByteWriter().u32(4711).u64(1_700_000_000_123_456_789n).finish();
    expect(decodeSpawned(spawned)).toEqual({ pid: 4711, time: 1_700_000_000_123 });
  });

  test('a wait status decodes to an exit code or a signal', () => {
    expect(exited(0x300)).toMatchObject({ exitCode: 3, signalNumber: null });
    expect(exited(9)).toMatchObject({ exitCode: null, signalNumber: 9 });
    expect(exited(0x80 | 11)).toMatchObject({ exitCode: null, signalNumber: 11 });
  });

  test('truncated, extended or random payloads cause a ProtocolError', () => {
    const random = seededRandom(11);
    const decoders = [decodeCredit, decodeSignal, decodeSpawnFailed, decodeSpawned, decodeExited];
    const json = [parseHello, parseOrder, parseStart, parseReport];
    for (let round = 0; round < 500; round++) {
      const bytes = randomBytes(random(30), random);
      for (const decode of [...decoders, ...json]) {
        try {
          decode(bytes);
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError);
        }
      }
    }
    expect(() => decodeCredit(new Uint8Array(9))).toThrow(/1 byte too many/);
    expect(() => decodeSpawned(new Uint8Array(5))).toThrow(/time needs 8 bytes, 1 are left/);
  });

  test('the failure of malformed JSON names the field', () => {
    expect(() => parseStart(text({ placement: null }))).toThrow(/start: environment/);
    expect(() => parseReport(text({ type: 'nonsense' }))).toThrow(ProtocolError);
    expect(() => parseStart(Buffer.from('{'))).toThrow(/no JSON/);
  });
});

const spawnedRank = {
  rank: 3,
  stdinPipe: true,
  interactive: false,
  mergeStderr: false,
  pmi: false,
  workingDirectory: '/w',
  argv: ['prog', 'ä'],
  environment: { RANK: '3' },
  cpus: [1, 2],
};
const spawnOrder = (rank: Partial<typeof spawnedRank> = {}) =>
  encodeSpawnOrder(
    { leaseMs: 6000, outputCredit: 1000, runtimeDirectory: '/run/x', ranks: [{ ...spawnedRank, ...rank }] },
    { SHARED: 'yes' },
  );

test.each([
  [{ stdinPipe: false }, 0],
  [{ stdinPipe: true }, 1],
  [{ stdinPipe: false, interactive: true }, 2],
  [{ stdinPipe: false, mergeStderr: true }, 4],
  [{ interactive: true, mergeStderr: true }, 7],
  [{ pmi: true }, 9],
])('the guardian reads of a rank with %j the flags %d', (rank, flags) => {
  const reader = new ByteReader(spawnOrder(rank).subarray(4 + 8 + 4 + '/run/x'.length + 4 + 4), 'order');
  expect(reader.u32()).toBe(flags);
});

test('a spawn order has the layout that guardian.ts describes', () => {
  const bytes = spawnOrder();
  const reader = new ByteReader(bytes, 'order');
  expect([reader.u32(), reader.u64(), reader.string(), reader.u32()]).toEqual([6000, 1000n, '/run/x', 1]);
  expect([reader.u32(), reader.u32(), reader.string()]).toEqual([3, 1, '/w']);
  expect([reader.u32(), reader.string(), reader.string()]).toEqual([2, 'prog', 'ä']);
  expect([reader.u32(), reader.string(), reader.string()]).toEqual([2, 'SHARED=yes', 'RANK=3']);
  expect([reader.u32(), reader.u32(), reader.u32()]).toEqual([2, 1, 2]);
  reader.end();
  expect(FRAME_HEADER_BYTES).toBe(16);
});
