/**
 * Messages of an agent tree. The launcher reaches a host through another host, whose agent runs the remote shell and forwards frames. Launcher
 * and child agent exchange frames inside frames of kind `branch`; one such frame carries all of one event-loop tick:
 *
 *   passed   per frame: u32 branches, each u32, then u32 bytes, the frame
 *
 * The parent agent keeps the lease with its child agents: it forwards the launcher's heartbeats to all of them, consumes theirs, and reports a
 * child whose lease has expired (AgentReport `silent`, on behalf of that host).
 */
import { ByteReader, ByteWriter } from './bytes.ts';
import { decodeFrame, encodeFrame } from './codec.ts';
import { FRAME_HEADER_BYTES, type Frame } from './frame.ts';

/** Flags of a frame of kind `branch`. */
export const BranchMessage = {
  /** In both directions: the payload holds frames to or from child agents; the subject has no meaning. */
  passed: 0,
  /** launcher → agent: start the child agent; payload JSON BranchOrder. */
  begin: 1,
  /** launcher → agent: no further frame follows. */
  close: 2,
  /** launcher → agent: detach from the remote shell; the child agent exits by itself. */
  letGo: 3,
  /** launcher → agent: kill the remote shell. */
  kill: 4,
  /** agent → launcher: no further frame follows; payload JSON BranchProblem. */
  closed: 5,
  /** agent → launcher: the remote shell is gone; payload JSON BranchEnd. */
  gone: 6,
} as const;

export interface BranchOrder {
  /** The remote shell's command line, program first. */
  readonly words: readonly string[];
}

export interface BranchProblem {
  /** Reason of the link's failure; null for a clean end. */
  readonly problem: string | null;
}

export interface BranchEnd {
  /** Exit status of the remote shell; null: it was killed, or could not be started. */
  readonly status: number | null;
  /** The last part of its stderr. */
  readonly remarks: string;
}

/** A frame and the branches to which it goes; towards the launcher there is one branch. */
interface Passed {
  readonly branches: readonly number[];
  readonly frame: Frame;
}

/** Number of bytes of the frame in a payload. */
export function passedBytes({ branches, frame }: Passed): number {
  return 4 * (branches.length + 2) + FRAME_HEADER_BYTES + frame.payload.length;
}

export function encodePassed(all: readonly Passed[]): Uint8Array {
  const writer = new ByteWriter(all.reduce((sum, one) => sum + passedBytes(one), 0));
  for (const { branches, frame } of all) {
    writer.u32(branches.length);
    for (const branch of branches) writer.u32(branch);
    writer.block(encodeFrame(frame));
  }
  return writer.finish();
}

/** @throws ProtocolError for a malformed payload, and for a frame that names one branch twice */
export function decodePassed(payload: Uint8Array): Passed[] {
  const reader = new ByteReader(payload, 'frames of branches');
  const all: Passed[] = [];
  while (reader.left > 0) {
    const branches: number[] = [];
    for (let left = reader.u32('a number of branches'); left > 0; left--) branches.push(reader.u32('a branch'));
    if (branches.length > 1 && new Set(branches).size < branches.length) throw reader.malformed('a branch twice');
    all.push({ branches, frame: decodeFrame(reader.block('a frame')) });
  }
  return all;
}
