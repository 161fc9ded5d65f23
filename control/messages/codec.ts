/** Frames to bytes and back; frame.ts has the layout. */
import { FRAME_HEADER_BYTES, FRAME_VERSION, FrameKind, MAX_PAYLOAD_BYTES } from './frame.ts';
import type { Frame } from './frame.ts';
import { ProtocolError } from './protocol-error.ts';

const EMPTY = new Uint8Array(0);
const EMPTY_BUFFER = Buffer.alloc(0);
const knownKinds: ReadonlySet<number> = new Set(Object.values(FrameKind));

export function isFrameKind(kind: number): kind is FrameKind {
  return knownKinds.has(kind);
}

export interface FrameFields {
  readonly flags?: number;
  readonly subject?: number;
  readonly request?: number;
  readonly payload?: Uint8Array;
}

/** A frame; what is not given is 0 or empty. */
export function makeFrame(kind: FrameKind, fields: FrameFields = {}): Frame {
  return {
    kind,
    flags: fields.flags ?? 0,
    subject: fields.subject ?? 0,
    request: fields.request ?? 0,
    payload: fields.payload ?? EMPTY,
  };
}

/** The 16 bytes before the payload. */
export function encodeHeader(frame: Frame): Buffer {
  const header = Buffer.allocUnsafe(FRAME_HEADER_BYTES);
  writeHeader(frame, header);
  return header;
}

/** Header and payload in one piece (the payload is copied). */
export function encodeFrame(frame: Frame): Buffer {
  const bytes = Buffer.allocUnsafe(FRAME_HEADER_BYTES + frame.payload.length);
  writeHeader(frame, bytes);
  bytes.set(frame.payload, FRAME_HEADER_BYTES);
  return bytes;
}

/** The one frame that the bytes are. @throws ProtocolError if they are anything else */
export function decodeFrame(bytes: Uint8Array): Frame {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (buffer.length < FRAME_HEADER_BYTES) throw new ProtocolError(`a frame of ${buffer.length} bytes`);
  const payloadBytes = buffer.readUInt32LE(0);
  const kind = buffer.readUInt8(5);
  const problem = judgeHeader(payloadBytes, kind, buffer, MAX_PAYLOAD_BYTES);
  if (problem !== null || !isFrameKind(kind)) throw new ProtocolError(problem ?? `kind ${kind} is unknown`);
  if (buffer.length !== FRAME_HEADER_BYTES + payloadBytes)
    throw new ProtocolError(`${buffer.length} bytes, where one frame has ${FRAME_HEADER_BYTES + payloadBytes}`);
  return readFrame(buffer, 0, kind, payloadBytes);
}

/** At `offset`, where a whole frame lies. */
function readFrame(bytes: Buffer, offset: number, kind: FrameKind, payloadBytes: number): Frame {
  const begin = offset + FRAME_HEADER_BYTES;
  return {
    kind,
    flags: bytes.readUInt16LE(offset + 6),
    subject: bytes.readUInt32LE(offset + 8),
    request: bytes.readUInt32LE(offset + 12),
    payload: payloadBytes === 0 ? EMPTY : bytes.subarray(begin, begin + payloadBytes),
  };
}

/** What is wrong with the frame that `bytes` begin with; null: nothing. */
function judgeHeader(payloadBytes: number, kind: number, bytes: Buffer, maxPayloadBytes: number): string | null {
  const version = bytes.readUInt8(4);
  if (version !== FRAME_VERSION) {
    const text = readableBeginning(bytes);
    if (text !== '') return `it sent text, which is no frame: "${text}"`;
    return `the frame's version is ${version}, ours is ${FRAME_VERSION}`;
  }
  if (!isFrameKind(kind)) return `the frame's kind, ${kind}, is unknown`;
  if (payloadBytes > maxPayloadBytes) {
    return `the frame announces ${payloadBytes} bytes; ${maxPayloadBytes} is the most`;
  }
  return null;
}

function writeHeader(frame: Frame, into: Buffer): void {
  if (frame.payload.length > MAX_PAYLOAD_BYTES) {
    throw new ProtocolError(
      `a frame of kind ${frame.kind} would carry ${frame.payload.length} bytes; ${MAX_PAYLOAD_BYTES} is the most`,
    );
  }
  into.writeUInt32LE(frame.payload.length, 0);
  into[4] = FRAME_VERSION;
  into[5] = frame.kind;
  into.writeUInt16LE(frame.flags, 6);
  into.writeUInt32LE(frame.subject, 8);
  into.writeUInt32LE(frame.request, 12);
}

/**
 * Cuts a byte stream into frames. A payload is a view into the pushed chunk where it lies in one, so a chunk must not be
 * written to after it was pushed. After a ProtocolError the stream cannot be trusted any more: every later push throws it again.
 */
export class FrameDecoder {
  readonly #onFrame: (frame: Frame) => void;
  readonly #maxPayloadBytes: number;
  /** What came of a frame that is not whole yet, at the beginning of memory that is ours. */
  #held = EMPTY_BUFFER;
  #heldBytes = 0;
  #needed = FRAME_HEADER_BYTES;
  #failure: ProtocolError | null = null;

  constructor(onFrame: (frame: Frame) => void, maxPayloadBytes = MAX_PAYLOAD_BYTES) {
    this.#onFrame = onFrame;
    this.#maxPayloadBytes = maxPayloadBytes;
  }

  /** @throws ProtocolError for bytes that are no frame, and whatever `onFrame` throws */
  push(chunk: Uint8Array): void {
    if (this.#failure !== null) throw this.#failure;
    if (this.#heldBytes > 0) {
      this.#hold(chunk);
      if (this.#heldBytes < this.#needed) return;
    }
    const bytes =
      this.#heldBytes > 0
        ? this.#held.subarray(0, this.#heldBytes)
        : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    // The frames are views into it.
    this.#held = EMPTY_BUFFER;
    this.#heldBytes = 0;
    const used = this.#cut(bytes);
    if (used < bytes.length) this.#hold(bytes.subarray(used));
  }

  /** However small the pieces are that a frame comes in, they take no more than it will. */
  #hold(piece: Uint8Array): void {
    const length = this.#heldBytes + piece.length;
    if (length > this.#held.length) {
      const larger = Buffer.allocUnsafe(Math.max(length, Math.min(2 * length, this.#needed)));
      this.#held.copy(larger, 0, 0, this.#heldBytes);
      this.#held = larger;
    }
    this.#held.set(piece, this.#heldBytes);
    this.#heldBytes = length;
  }

  /** The stream is at its end. @throws ProtocolError if it ended inside a frame */
  end(): void {
    if (this.#failure === null && this.#heldBytes > 0) {
      throw new ProtocolError(`the stream ended inside a frame, after ${this.#heldBytes} of ${this.#needed} bytes`);
    }
  }

  #cut(bytes: Buffer): number {
    let offset = 0;
    while (bytes.length - offset >= FRAME_HEADER_BYTES) {
      const payloadBytes = bytes.readUInt32LE(offset);
      const kind = bytes.readUInt8(offset + 5);
      const problem = judgeHeader(payloadBytes, kind, bytes.subarray(offset), this.#maxPayloadBytes);
      if (problem !== null || !isFrameKind(kind)) return this.#fail(problem ?? `kind ${kind} is unknown`);
      const end = offset + FRAME_HEADER_BYTES + payloadBytes;
      if (end > bytes.length) {
        this.#needed = FRAME_HEADER_BYTES + payloadBytes;
        return offset;
      }
      this.#onFrame(readFrame(bytes, offset, kind, payloadBytes));
      offset = end;
    }
    this.#needed = FRAME_HEADER_BYTES;
    return offset;
  }

  #fail(problem: string): never {
    this.#failure = new ProtocolError(problem);
    throw this.#failure;
  }
}

const SHOWN_BYTES = 40;

/** The line that the bytes begin with, if people can read it. */
export function readableBeginning(bytes: Buffer): string {
  const [line = ''] = bytes.toString('latin1', 0, SHOWN_BYTES + 1).split(/[\r\n]/, 1);
  if (/[^ -~]/.test(line)) return '';
  return line.length > SHOWN_BYTES ? `${line.slice(0, SHOWN_BYTES)}…` : line;
}

/** Payload of the kinds that carry JSON (link.ts). */
export function encodeJson(value: object): Uint8Array {
  return Buffer.from(JSON.stringify(value));
}
