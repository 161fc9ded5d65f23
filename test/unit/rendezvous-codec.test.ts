import { describe, expect, test } from 'vitest';
import * as bootstrap from '../../control/messages/bootstrap-codec.ts';
import { ByteReader, ByteWriter } from '../../control/messages/bytes.ts';
import { decodeCalls, encodeCalls } from '../../control/messages/calls.ts';
import { writeKey } from '../../control/messages/key.ts';
import { decodePeerInfo, encodePeerInfo } from '../../control/messages/peer-info.ts';
import { ProtocolError } from '../../control/messages/protocol-error.ts';
import * as codec from '../../control/messages/rendezvous-codec.ts';
import { LeftHow } from '../../control/messages/rendezvous.ts';
import { randomBytes, seededRandom } from '../rig/random.ts';
import { entry, newKey, peerInfo } from '../rig/rendezvous.ts';

const key = newKey(5);
const bytes = Uint8Array.of(1, 2, 3);
const failed = { key, result: 6, sentence: 'rank 2 (knoten-ö) died' } as const;

/** What a kind's payload reads back as. */
const messages: readonly (readonly [string, Uint8Array, (payload: Uint8Array) => unknown, unknown])[] = [
  [
    'merged',
    codec.encodeMerged({ key, size: 9, entries: [entry(3), entry(7, bytes)] }),
    codec.decodeMerged,
    { key, size: 9, entries: [entry(3), entry(7, bytes)] },
  ],
  [
    'completed',
    codec.encodeCompleted(key, [bytes, bytes]),
    codec.decodeCompleted,
    { key, table: Uint8Array.of(2, 0, 0, 0, 3, 0, 0, 0, 1, 2, 3, 3, 0, 0, 0, 1, 2, 3) },
  ],
  [
    'hostPlan',
    codec.encodeHostPlanPart({ key, segmentBytes: 2 ** 40, part: bytes }),
    codec.decodeHostPlanPart,
    { key, segmentBytes: 2 ** 40, part: bytes },
  ],
  ['planBody', codec.encodePlanBody(key, bytes), codec.decodePlanBody, { key, body: bytes }],
  ['keyFailed', codec.encodeKeyFailed(failed), codec.decodeKeyFailed, failed],
  [
    'routed',
    codec.encodeRouted({ key, from: 1, to: 2, tag: 3, bytes }),
    codec.decodeRouted,
    { key, from: 1, to: 2, tag: 3, bytes },
  ],
  [
    'left',
    codec.encodeLeft({ key, rank: 1, how: LeftHow.died, reason: 'x' }),
    codec.decodeLeft,
    { key, rank: 1, how: LeftHow.died, reason: 'x' },
  ],
  ['broken', codec.encodeBroken({ ...failed, rank: 2 }), codec.decodeBroken, { ...failed, rank: 2 }],
];

/** Questions of engines; their encoders are native. */
const questions = [
  bootstrap.decodeEngineHello,
  bootstrap.decodeJoin,
  bootstrap.decodeGather,
  bootstrap.decodePost,
  bootstrap.decodeFetch,
  bootstrap.decodeLeave,
] as const;

describe('payloads of the rendezvous', () => {
  test.each(messages)('the payload %s survives encoding and decoding', (_, payload, decode, expected) => {
    expect(plain(decode(payload))).toEqual(plain(expected));
  });

  test.each(messages.filter(([name]) => name !== 'planBody'))(
    'the payload %s is rejected when it is too short or too long',
    (_, payload, decode) => {
      for (let length = 0; length < payload.length; length++) {
        expect(() => decode(payload.subarray(0, length))).toThrow(ProtocolError);
      }
      expect(() => decode(Buffer.concat([payload, bytes]))).toThrow(ProtocolError);
    },
  );

  test('random and damaged bytes cause nothing but a ProtocolError', () => {
    const random = seededRandom(5);
    const decoders = [...messages.map(([, , decode]) => decode), ...questions];
    for (let round = 0; round < 4000; round++) {
      const [, valid = bytes] = messages[random(messages.length)] ?? [];
      const damaged = random(2) === 0 ? randomBytes(random(300), random) : valid.slice();
      for (let change = 0; change <= random(4); change++) damaged[random(damaged.length)] = random(256);
      for (const decode of decoders) {
        try {
          decode(damaged);
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError);
        }
      }
    }
  });
});

describe('the peer info of a rank', () => {
  test('peer info survives decoding, including hashes above 2^53', () => {
    const info = decodePeerInfo(
      peerInfo({
        device: 'cuda',
        hostHash: 'fedcba9876543210',
        busId: '1b0000',
        gpuDirect: true,
        smCount: 132,
        maxChannels: 16,
        communicators: 3,
      }),
      'facts',
    );
    expect(info).toMatchObject({
      device: 'cuda',
      hostHash: 'fedcba9876543210',
      busId: '1b0000',
      gpuDirect: true,
      smCount: 132,
      maxChannels: 16,
      communicators: 3,
    });
    expect(decodePeerInfo(encodePeerInfo(info), 'facts')).toEqual(info);
  });

  test('peer info with another version, device or an impossible port is rejected', () => {
    expect(readChanged(0, 2)).toThrow(/^facts of rank 3: version 2, expected 1$/);
    expect(readChanged(4, 2)).toThrow(/device 2/);
    expect(readChanged(12, 65_536)).toThrow(/65536 is no TCP port/);
  });
});

test('a reader names the missing field and the number of bytes left', () => {
  const payload = new ByteWriter().u32(1).string('abc').finish();
  const reader = new ByteReader(payload.subarray(0, 9), 'join');
  reader.u32('size');
  expect(() => reader.string('name')).toThrow('join: name needs 3 bytes, 1 are left');
});

/** Buffers and Uint8Arrays of the same bytes become equal. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return [...value];
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, plain(field)]));
}

/** Reads facts of a rank with one u32 changed. */
function readChanged(at: number, value: number): () => unknown {
  const info = peerInfo();
  new DataView(info.buffer, info.byteOffset).setUint32(at, value, true);
  return () => decodePeerInfo(info, 'facts of rank 3');
}

const callsOf = (hashes: number, characters: number) => () => {
  const one = { rank: 1, pid: 2, count: 3, hashes: Array.from({ length: hashes }, () => 7), waitingFor: null };
  return decodeCalls(encodeCalls(key, [{ ...one, last: 'x'.repeat(characters) }])).all;
};
const reasonOf = (characters: number) => () =>
  codec.decodeLeft(writeKey(new ByteWriter(), key).u32(1).u32(LeftHow.died).string('x'.repeat(characters)).finish());

describe('what engines say of themselves has a limit', () => {
  test('a rank has at most 64 hashes, and a call of 400 characters', () => {
    expect(callsOf(64, 400)()).toMatchObject([{ rank: 1, pid: 2, count: 3, waitingFor: null }]);
    expect(callsOf(65, 400)).toThrow('65 hashes of a rank');
    expect(callsOf(64, 401)).toThrow('a call of 401 characters');
  });

  test('the reason of a departure has at most 4096 characters', () => {
    expect(reasonOf(4096)()).toMatchObject({ rank: 1, how: LeftHow.died });
    expect(reasonOf(4097)).toThrow('a reason of 4097 characters');
  });
});
