/** What is said of bytes that are no frame, and what a frame is without its fields. */
import { describe, expect, test } from 'vitest';
import { decodeFrame, encodeFrame, encodeHeader, FrameDecoder, makeFrame } from '../../control/messages/codec.ts';
import { FrameKind, MAX_PAYLOAD_BYTES } from '../../control/messages/frame.ts';
import { ProtocolError } from '../../control/messages/protocol-error.ts';

/** A header, in front of what follows it. */
function header({ bytes = 0, version = 1, kind = 0x1a }, rest = ''): Buffer {
  const buffer = Buffer.alloc(16);
  buffer.writeUInt32LE(bytes, 0);
  buffer[4] = version;
  buffer[5] = kind;
  return Buffer.concat([buffer, Buffer.from(rest)]);
}

test('a frame has zeros and no payload where nothing is given', () => {
  const frame = makeFrame(FrameKind.heartbeat);
  expect(frame).toEqual({ kind: 0x1a, flags: 0, subject: 0, request: 0, payload: new Uint8Array(0) });
  expect(encodeFrame(frame)).toEqual(header({}));
});

test('header and payload have their layout', () => {
  const frame = makeFrame(FrameKind.output, { flags: 0x201, subject: 3, request: 4, payload: Buffer.from('ab') });
  const bytes = Buffer.from('020000000114010203000000040000006162', 'hex');
  expect(encodeFrame(frame)).toEqual(bytes);
  expect(encodeHeader(frame)).toEqual(bytes.subarray(0, 16));
  expect(decodeFrame(bytes)).toEqual({ ...frame, payload: bytes.subarray(16) });
});

test('a payload of 16 MiB is the largest', () => {
  const payload = new Uint8Array(MAX_PAYLOAD_BYTES);
  expect(encodeHeader(makeFrame(FrameKind.output, { payload })).readUInt32LE(0)).toBe(MAX_PAYLOAD_BYTES);
  const more = makeFrame(FrameKind.output, { payload: new Uint8Array(MAX_PAYLOAD_BYTES + 1) });
  expect(() => encodeHeader(more)).toThrow('a frame of kind 20 would carry 16777217 bytes; 16777216 is the most');
});

describe('bytes that are no frame', () => {
  test.each<[Buffer, string]>([
    [Buffer.alloc(15), 'a frame of 15 bytes'],
    [header({ kind: 0x7f }), "the frame's kind, 127, is unknown"],
    [header({ version: 2 }), "the frame's version is 2, ours is 1"],
    [header({ bytes: MAX_PAYLOAD_BYTES + 1 }), 'the frame announces 16777217 bytes; 16777216 is the most'],
    [header({ bytes: 2 }, 'abc'), '19 bytes, where one frame has 18'],
    [header({ bytes: 4 }, 'abc'), '19 bytes, where one frame has 20'],
    [Buffer.from('Permission denied\nmore text'), 'it sent text, which is no frame: "Permission denied"'],
    [Buffer.from('Denied: it is late\rmore text'), 'it sent text, which is no frame: "Denied: it is late"'],
    [Buffer.from('x'.repeat(40)), `it sent text, which is no frame: "${'x'.repeat(40)}"`],
    [Buffer.from('x'.repeat(41)), `it sent text, which is no frame: "${'x'.repeat(40)}…"`],
    [Buffer.from('\nleading newline of it'), "the frame's version is 100, ours is 1"],
    [Buffer.from('with an umlaut, ä, in it'), "the frame's version is 32, ours is 1"],
  ])('case %#: decodeFrame says why %j is none', (bytes, message) => {
    expect(() => decodeFrame(bytes)).toThrow(new ProtocolError(message));
  });

  test('a decoder repeats its first failure, and delivers the frames before it', () => {
    const kinds: number[] = [];
    const decoder = new FrameDecoder(({ kind }) => kinds.push(kind), 4);
    const bytes = Buffer.concat([header({ bytes: 4 }, 'abcd'), header({}), header({ bytes: 5 }, 'abcde')]);
    const message = 'the frame announces 5 bytes; 4 is the most';
    expect(() => decoder.push(bytes)).toThrow(new ProtocolError(message));
    expect(kinds).toEqual([0x1a, 0x1a]);
    expect(() => decoder.push(header({}))).toThrow(new ProtocolError(message));
    expect(() => decoder.end()).not.toThrow();
  });

  test('a stream that ends inside a frame is reported with what is missing', () => {
    const decoder = new FrameDecoder(() => undefined);
    decoder.push(header({ bytes: 10 }, 'abc'));
    expect(() => decoder.end()).toThrow('the stream ended inside a frame, after 19 of 26 bytes');
    decoder.push(Buffer.from('defghij'));
    decoder.end();
    decoder.push(header({}).subarray(0, 3));
    expect(() => decoder.end()).toThrow('the stream ended inside a frame, after 3 of 16 bytes');
  });
});
