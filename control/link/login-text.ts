/**
 * What a host's login writes to stdout before our command runs. The host's first frame, StagingMessage.alive, ends it. The twin is
 * native/binding/connection.cc.
 */
import { encodeFrame, makeFrame, readableBeginning } from '../messages/codec.ts';
import { FRAME_HEADER_BYTES, FRAME_VERSION, FrameKind } from '../messages/frame.ts';
import { ProtocolError } from '../messages/protocol-error.ts';

const ALIVE = 7;
const FIRST_FRAME = encodeFrame(makeFrame(FrameKind.staging, { flags: ALIVE }));
const VERSION_OFFSET = 4;
const MAX_TEXT_BYTES = 1024 * 1024;

export class LoginText {
  #held = Buffer.alloc(0);
  #textBytes = 0;
  #line = '';
  #isOver = false;

  /** What of the stream are frames; empty while there is only text. @throws ProtocolError for too much of it */
  take(chunk: Buffer): Buffer {
    if (this.#isOver) return chunk;
    const bytes = Buffer.concat([this.#held, chunk]);
    this.#held = bytes;
    if (bytes.length < FRAME_HEADER_BYTES) return Buffer.alloc(0);
    if (this.#textBytes === 0 && bytes[VERSION_OFFSET] === FRAME_VERSION) return this.#end(bytes);
    if (this.#textBytes === 0) this.#line = readableBeginning(bytes);
    const found = bytes.indexOf(FIRST_FRAME);
    const text = found === -1 ? bytes.length - (FRAME_HEADER_BYTES - 1) : found;
    this.#textBytes += text;
    if (found !== -1) return this.#end(bytes.subarray(text));
    this.#held = bytes.subarray(text);
    if (this.#textBytes > MAX_TEXT_BYTES) throw this.#problem();
    return Buffer.alloc(0);
  }

  /** The stream is at its end. @throws ProtocolError if it had only text */
  end(): void {
    if (this.#isOver || this.#textBytes + this.#held.length === 0) return;
    if (this.#textBytes === 0) this.#line = readableBeginning(this.#held);
    throw this.#problem();
  }

  #end(frames: Buffer): Buffer {
    this.#isOver = true;
    this.#held = Buffer.alloc(0);
    return frames;
  }

  #problem(): ProtocolError {
    return new ProtocolError(`it sent text, which is no frame: "${this.#line}"`);
  }
}
