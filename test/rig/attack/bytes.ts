/** What an attacker sends where a frame is expected. */
import { encodeFrame, makeFrame } from '../../../control/messages/codec.ts';
import { ALL_RANKS, FRAME_HEADER_BYTES, FrameKind, MAX_PAYLOAD_BYTES } from '../../../control/messages/frame.ts';
import { randomBytes, seededRandom } from '../random.ts';

export interface Attack {
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** Of the kinds of control/messages/frame.ts. */
export const frameKinds = Object.entries(FrameKind);

const random = seededRandom(20_261_123);
const SUBJECTS = [0, 1, 99, ALL_RANKS];
const DEEP = 100_000;

const payloads: readonly (readonly [string, Uint8Array])[] = [
  ['nothing', new Uint8Array(0)],
  ['a byte', Uint8Array.of(0)],
  ['zeros', new Uint8Array(64)],
  ['ones', new Uint8Array(64).fill(0xff)],
  ['noise', randomBytes(64, random)],
  ['much noise', randomBytes(5000, random)],
  ['no object', Buffer.from('null')],
  ['an empty object', Buffer.from('{}')],
  ['deep JSON', Buffer.from('['.repeat(DEEP) + ']'.repeat(DEEP))],
  ['deep objects', Buffer.from('{"type":'.repeat(DEEP) + '0' + '}'.repeat(DEEP))],
  ['a prototype', Buffer.from('{"__proto__":{"type":"notice"},"constructor":1}')],
];

/** Frames of one kind that mean nothing, of every rank that there may be or not. */
export function framesOf(kind: FrameKind): Attack[] {
  return payloads.map(([name, payload], index) => {
    const subject = SUBJECTS[index % SUBJECTS.length] ?? 0;
    return { name: `${name}, subject ${subject}`, bytes: encodeFrame(makeFrame(kind, { subject, payload })) };
  });
}

/** Every beginning of a frame that is one, itself left out. */
export function cuts(frame: Uint8Array): Attack[] {
  return Array.from({ length: frame.length }, (_, length) => ({
    name: `cut to ${length} of ${frame.length} bytes`,
    bytes: frame.subarray(0, length),
  }));
}

/** The frame's payload cut and prolonged, in a header that says so. */
export function lengths(frame: Uint8Array): Attack[] {
  const shorter = Array.from({ length: frame.length - FRAME_HEADER_BYTES }, (_, length) => resized(frame, length));
  return [...shorter, resized(frame, frame.length - FRAME_HEADER_BYTES + 1)];
}

function resized(frame: Uint8Array, payloadBytes: number): Attack {
  const bytes = Buffer.alloc(FRAME_HEADER_BYTES + payloadBytes);
  bytes.set(frame.subarray(0, bytes.length));
  bytes.writeUInt32LE(payloadBytes, 0);
  return { name: `${payloadBytes} of ${frame.length - FRAME_HEADER_BYTES} bytes of payload`, bytes };
}

const header = (payloadBytes: number, version: number, kind: number): Buffer => {
  const bytes = Buffer.alloc(FRAME_HEADER_BYTES);
  bytes.writeUInt32LE(payloadBytes, 0);
  bytes[4] = version;
  bytes[5] = kind;
  return bytes;
};

/** No frames at all. */
export const noFrames: readonly Attack[] = [
  { name: 'HTTP', bytes: Buffer.from('GET / HTTP/1.1\r\nHost: nobody\r\n\r\n') },
  { name: 'a TLS hello', bytes: Buffer.from('16030100c8010000c40303', 'hex') },
  { name: 'zeros', bytes: new Uint8Array(100) },
  { name: 'noise', bytes: randomBytes(4096, random) },
  { name: 'another version', bytes: header(0, 99, FrameKind.heartbeat) },
  { name: 'a kind that there is not', bytes: header(0, 1, 0xee) },
  { name: 'a payload beyond the most', bytes: header(MAX_PAYLOAD_BYTES + 1, 1, FrameKind.output) },
  { name: 'a payload of 4 GiB', bytes: header(0xffff_ffff, 1, FrameKind.hello) },
];
