import { describe, expect, test } from 'vitest';
import { LoginText } from '../../control/link/login-text.ts';
import { encodeFrame, makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';

const first = encodeFrame(makeFrame(FrameKind.staging, { flags: 7 }));
const hello = encodeFrame(makeFrame(FrameKind.hello, { payload: Buffer.from('{}') }));
const frames = Buffer.concat([first, hello]);
const welcome = Buffer.from('Welcome to node7\n\u001b[1mQuota: 3 %\u001b[0m\n');

/** In chunks of so many bytes. */
function taken(stream: Buffer, chunkBytes: number): Buffer {
  const text = new LoginText();
  const pieces: Buffer[] = [];
  for (let at = 0; at < stream.length; at += chunkBytes) pieces.push(text.take(stream.subarray(at, at + chunkBytes)));
  text.end();
  return Buffer.concat(pieces);
}

describe('what a login writes before the first frame', () => {
  test.each([1, 7, 16, 17, 1000])('is skipped in chunks of %i bytes', (chunkBytes) => {
    expect(taken(Buffer.concat([welcome, frames]), chunkBytes)).toEqual(frames);
    expect(taken(Buffer.concat([Buffer.from('\n'), frames]), chunkBytes)).toEqual(frames);
    expect(taken(frames, chunkBytes)).toEqual(frames);
    expect(taken(hello, chunkBytes)).toEqual(hello);
  });

  test('text without a frame is an error with its beginning', () => {
    expect(() => taken(welcome, 5)).toThrow('it sent text, which is no frame: "Welcome to node7"');
    expect(() => taken(Buffer.from('gone\n'), 5)).toThrow('it sent text, which is no frame: "gone"');
    expect(taken(Buffer.alloc(0), 5)).toEqual(Buffer.alloc(0));
  });

  test('text without an end is given up after a mebibyte', () => {
    const text = new LoginText();
    const chunk = Buffer.from('y\n'.repeat(256 * 1024));
    text.take(chunk);
    text.take(chunk);
    expect(() => text.take(chunk)).toThrow('it sent text, which is no frame: "y"');
  });
});
