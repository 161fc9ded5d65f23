/**
 * What passes between a job's launcher and `ncclrun logs` or `attach`: a line of JSON asks, frames answer. A frame is its kind (1 byte), the length
 * of what follows (4 bytes, big endian), and that.
 */
import * as v from 'valibot';

export interface FollowRequest {
  /** As the job's note has it: who can read that may read the output. */
  readonly key: string;
  /** Until the job ends; false: what has been kept. */
  readonly follows: boolean;
  /** Begins with what has been kept. */
  readonly kept: boolean;
  /** Whose output; null: everybody's. */
  readonly ranks: readonly { readonly first: number; readonly last: number }[] | null;
  readonly stdoutIsTerminal: boolean;
  readonly stderrIsTerminal: boolean;
  /** Of stderr's terminal; null: it is none. */
  readonly columns: number | null;
  /** Variables that say whether there is colour. */
  readonly environment: Readonly<Record<string, string>>;
}

/** Asks once: for what the ranks have recorded (a frame `recorder` answers), or how they fare (`status`); else the connection ends. */
export interface AskRequest {
  readonly key: string;
  readonly asks: 'dump' | 'status';
}

/** Asks once for stacks: a frame `stacks` answers, or the end of the connection. */
export interface StackRequest {
  readonly key: string;
  /** Null: of all ranks. */
  readonly stacks: { readonly ranks: readonly number[] | null };
}

export const FollowKind = {
  stdout: 1,
  stderr: 2,
  /** The job has ended; one byte, its exit status. */
  ended: 3,
  /** What was asked for has been sent, and the job runs. */
  shown: 4,
  /** From here on output is sent. */
  begun: 5,
  /** JSON of a Recorder. */
  recorder: 6,
  /** JSON of a StackReport. */
  stacks: 7,
  /** JSON of a JobStatus. */
  status: 8,
} as const;
export type FollowKind = (typeof FollowKind)[keyof typeof FollowKind];

interface FollowFrame {
  readonly kind: number;
  readonly payload: Uint8Array;
}

export const MAX_REQUEST_BYTES = 64 * 1024;
const HEADER_BYTES = 5;

const whole = v.pipe(v.number(), v.integer(), v.minValue(0));

const requestSchema: v.GenericSchema<unknown, FollowRequest> = v.object({
  key: v.string(),
  follows: v.boolean(),
  kept: v.boolean(),
  ranks: v.nullable(v.array(v.object({ first: whole, last: whole }))),
  stdoutIsTerminal: v.boolean(),
  stderrIsTerminal: v.boolean(),
  columns: v.nullable(v.pipe(whole, v.minValue(1))),
  environment: v.record(v.string(), v.string()),
});

const askSchema: v.GenericSchema<unknown, AskRequest> = v.object({
  key: v.string(),
  asks: v.picklist(['dump', 'status']),
});

const stackSchema: v.GenericSchema<unknown, StackRequest> = v.object({
  key: v.string(),
  stacks: v.object({ ranks: v.nullable(v.array(whole)) }),
});

/** Null for what is no request. */
export function parseFollowRequest(line: string): FollowRequest | AskRequest | StackRequest | null {
  try {
    const read = v.safeParse(v.union([askSchema, stackSchema, requestSchema]), JSON.parse(line));
    return read.success ? read.output : null;
  } catch {
    return null;
  }
}

export function followFrame(kind: FollowKind, payload: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(HEADER_BYTES + payload.length);
  frame.writeUInt8(kind, 0);
  frame.writeUInt32BE(payload.length, 1);
  frame.set(payload, HEADER_BYTES);
  return frame;
}

/** Frames out of a stream of bytes. */
export class FollowFrames {
  #rest = Buffer.alloc(0);

  /** Those that the bytes complete. */
  push(bytes: Uint8Array): FollowFrame[] {
    let rest = this.#rest.length === 0 ? Buffer.from(bytes) : Buffer.concat([this.#rest, bytes]);
    const frames: FollowFrame[] = [];
    while (rest.length >= HEADER_BYTES) {
      const end = HEADER_BYTES + rest.readUInt32BE(1);
      if (rest.length < end) break;
      frames.push({ kind: rest.readUInt8(0), payload: rest.subarray(HEADER_BYTES, end) });
      rest = rest.subarray(end);
    }
    this.#rest = rest;
    return frames;
  }
}
