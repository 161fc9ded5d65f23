/**
 * Messages of an agent tree. The launcher reaches a host through another host, whose agent runs the remote shell and forwards frames. Launcher
 * and child agent exchange frames inside frames of kind `childAgent`; one such frame carries all of one event-loop tick:
 *
 *   passed   per frame: u32 children, each u32, then u32 bytes, the frame
 *
 * The parent agent keeps the lease with its child agents: it forwards the launcher's heartbeats to all of them, consumes theirs, and reports a
 * child whose lease has expired (AgentReport `silent`, on behalf of that host).
 */
import { ByteReader, ByteWriter } from './bytes.ts';
import { decodeFrame, encodeFrame } from './codec.ts';
import { FRAME_HEADER_BYTES, type Frame } from './frame.ts';

/** Flags of a frame of kind `childAgent`. */
export const ChildMessage = {
  /** In both directions: the payload holds frames to or from child agents; the subject has no meaning. */
  passed: 0,
  /** launcher → agent: start the child agent; payload JSON ChildOrder. */
  begin: 1,
  /** launcher → agent: no further frame follows. */
  close: 2,
  /** launcher → agent: detach from the remote shell; the child agent exits by itself. */
  letGo: 3,
  /** launcher → agent: kill the remote shell. */
  kill: 4,
  /** agent → launcher: no further frame follows; payload JSON ChildProblem. */
  closed: 5,
  /** agent → launcher: the remote shell is gone; payload JSON ChildEnd. */
  gone: 6,
} as const;

export interface ChildOrder {
  /** The remote shell's command line, program first. */
  readonly words: readonly string[];
}

export interface ChildProblem {
  /** Reason of the link's failure; null for a clean end. */
  readonly problem: string | null;
}

export interface ChildEnd {
  /** Exit status of the remote shell; null: it was killed, or could not be started. */
  readonly status: number | null;
  /** The last part of its stderr. */
  readonly stderr: string;
}

/** A frame and the child agents to which it goes; towards the launcher there is one. */
interface Passed {
  readonly children: readonly number[];
  readonly frame: Frame;
}

/** Number of bytes of the frame in a payload. */
export function passedBytes({ children, frame }: Passed): number {
  return 4 * (children.length + 2) + FRAME_HEADER_BYTES + frame.payload.length;
}

export function encodePassed(all: readonly Passed[]): Uint8Array {
  const writer = new ByteWriter(all.reduce((sum, one) => sum + passedBytes(one), 0));
  for (const { children, frame } of all) {
    writer.u32(children.length);
    for (const child of children) writer.u32(child);
    writer.block(encodeFrame(frame));
  }
  return writer.finish();
}

/** @throws ProtocolError for a malformed payload, and for a frame that names one child agent twice */
export function decodePassed(payload: Uint8Array): Passed[] {
  const reader = new ByteReader(payload, 'frames of child agents');
  const all: Passed[] = [];
  while (reader.left > 0) {
    const children: number[] = [];
    for (let left = reader.u32('a number of child agents'); left > 0; left--)
      children.push(reader.u32('a child agent'));
    if (children.length > 1 && new Set(children).size < children.length) throw reader.malformed('a child agent twice');
    all.push({ children, frame: decodeFrame(reader.block('a frame')) });
  }
  return all;
}
