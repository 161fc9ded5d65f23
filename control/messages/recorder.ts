/**
 * The flight recorder's operations as agents send them, reports keep them and `ncclrun replay` reads them. The memory that they come from is
 * native/include/ncclrun.h, ncclrunRecorder.
 */
import type { HostGpu } from './gpu.ts';

/** Entries of one process's ring. */
export const RECORDER_ENTRIES = 4096;
export const RECORDER_COMMUNICATORS = 256;
/** Of one process whose kernels record replays. */
export const RECORDER_GPUS = 8;
/** Of `peer` and `lastPeer`. */
export const NO_PEER = 0xffff_ffff;

/** Bits of an entry's flags: ncclrunRecord… */
export const RecordFlag = {
  inGroup: 1,
  captured: 2,
  inPlace: 4,
  gpuStamp: 8,
  failed: 16,
  aborted: 32,
  cancelled: 64,
  copyEngine: 128,
  waitedOnStream: 256,
  send: 512,
  onGpu: 1024,
  replay: 2048,
} as const;

/** One operation of one process, every field a whole number as the memory has it. */
export interface RecorderEntry {
  /** Number in the process, from 1. */
  readonly sequence: number;
  /** CLOCK_MONOTONIC of its host, nanoseconds; 0: not yet, or not known. Those of a GPU have been converted. */
  readonly enqueuedNs: number;
  readonly startedNs: number;
  readonly endedNs: number;
  readonly count: number;
  /**
   * Number among the communicator's collectives, or among the messages of the ordered pair. Of a replay: number among the replayed collectives that
   * as many others (`stream`) precede in their launch, or among the replayed messages of the pair.
   */
  readonly operation: number;
  /** Index of the communicator in its process. */
  readonly communicator: number;
  /** Root or peer, NO_PEER for none. */
  readonly peer: number;
  /** Whom it waited for last, NO_PEER where nobody knows. */
  readonly lastPeer: number;
  readonly hash: number;
  readonly flags: number;
  /** Index into COLLECTIVES. */
  readonly collective: number;
  /** ncclDataType_t, operator << 4. */
  readonly call: number;
  readonly algorithm: number;
  readonly protocol: number;
  readonly channels: number;
  readonly stream: number;
}

/** A communicator as one process has it. */
export interface RecordedCommunicator {
  /** As RecorderEntry.communicator. */
  readonly index: number;
  /** 16 hexadecimal digits. */
  readonly id: string;
  readonly epoch: number;
  readonly size: number;
  /** Of the process, in the communicator. */
  readonly rank: number;
  /** Of ncclConfig_t; empty: it has none. */
  readonly name: string;
}

/** What one process recorded. */
export interface RecordedProcess {
  /** In the job; -1 unknown. */
  readonly rank: number;
  readonly pid: number;
  readonly gpu: HostGpu | null;
  /** Operations recorded so far. */
  readonly recorded: number;
  /** Sequence of the oldest that the ring still holds; 0: none. */
  readonly oldest: number;
  /** Communicators that its table had no room for. */
  readonly unlisted: number;
  readonly communicators: readonly RecordedCommunicator[];
  /** encodeColumns, zlib, base64. */
  readonly entries: string;
  /** By how much times of its GPU may be wrong, nanoseconds; not there: it has none. */
  readonly gpuErrorNs?: number;
  /** Operations of replayed CUDA graphs, a ring for each GPU that has some; not there: none. */
  readonly replays?: readonly RecordedReplays[];
}

/** What kernels of one GPU recorded; as the fields of RecordedProcess. */
export interface RecordedReplays {
  readonly recorded: number;
  readonly oldest: number;
  readonly entries: string;
}

/** Payload of FrameKind.recorder from the launcher. The frame's request number comes back in each answer. */
export interface RecorderQuery {
  /** So many of the last operations of each process. */
  readonly last: number;
  /** All operations of these ranks. */
  readonly full: readonly number[];
}

/** Payload of FrameKind.recorder from an agent: each of its processes, then `end`. */
export type RecorderAnswer = ({ readonly type: 'process' } & RecordedProcess) | { readonly type: 'end' };
