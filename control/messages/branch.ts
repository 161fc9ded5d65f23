/**
 * Agents that start agents: a launcher reaches a host by way of another one, whose agent runs a remote shell for it and passes frames on. What the
 * two ends say to each other are frames inside of frames of kind `branch`, those of one turn of the event loop together:
 *
 *   passed   per frame: u32 branches, each u32, then u32 bytes, the frame
 *
 * An agent that starts others keeps the lease with them: it passes the launcher's heartbeats on to all of them, hears theirs, which go no further,
 * and says whose silence was too long (AgentReport `silent`, on behalf of that host).
 */
import { ByteReader, ByteWriter } from './bytes.ts';
import { decodeFrame, encodeFrame } from './codec.ts';
import { FRAME_HEADER_BYTES, type Frame } from './frame.ts';

/** Flags of a frame of kind `branch`. */
export const BranchWord = {
  /** Both ways: the payload is frames for, or of, the agents at the ends of branches; the subject means nothing. */
  passed: 0,
  /** launcher → agent: start it; payload JSON BranchOrder. */
  begin: 1,
  /** launcher → agent: no further frame follows. */
  close: 2,
  /** launcher → agent: the remote shell is not needed any more; whoever is at its other end leaves by itself. */
  letGo: 3,
  /** launcher → agent: nothing of it goes on. */
  kill: 4,
  /** agent → launcher: no further frame follows; payload JSON BranchProblem. */
  closed: 5,
  /** agent → launcher: the remote shell is gone; payload JSON BranchEnd. */
  gone: 6,
} as const;

export interface BranchOrder {
  /** The remote shell and what it is told, program first. */
  readonly words: readonly string[];
}

export interface BranchProblem {
  /** What broke it; null for a clean end. */
  readonly problem: string | null;
}

export interface BranchEnd {
  /** Exit status of the remote shell; null: it was killed, or could not be started. */
  readonly status: number | null;
  /** The end of what it said on stderr. */
  readonly remarks: string;
}

/** A frame and the branches that it is for; upwards that is one. */
interface Passed {
  readonly branches: readonly number[];
  readonly frame: Frame;
}

/** Bytes that it takes in a payload. */
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

/** @throws ProtocolError for bytes that are nothing of the kind, and for a branch that is to have one frame twice */
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
