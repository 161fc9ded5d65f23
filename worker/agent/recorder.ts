/**
 * Reads the flight recorder of a process (native/include/ncclrun.h, ncclrunRecorder). The process writes while we read, and may have written
 * anything: what is out of range is left out.
 */
import { parseRecorderQuery } from '../../control/link/recorder.ts';
import { encodeJson, makeFrame } from '../../control/messages/codec.ts';
import type { Frame } from '../../control/messages/frame.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import type { HostGpu } from '../../control/messages/gpu.ts';
import {
  RECORDER_COMMUNICATORS,
  RECORDER_ENTRIES,
  type RecordedCommunicator,
  type RecordedProcess,
  type RecorderAnswer,
  type RecorderEntry,
  type RecorderQuery,
} from '../../control/messages/recorder.ts';
import { encodeColumns } from '../../control/messages/recorder-columns.ts';
import { ALGORITHMS, COLLECTIVES, PROTOCOLS } from '../../control/plan/layout.ts';
import { readU64 } from '../../control/plan/u64.ts';

export const RECORDER_BYTES = 282_624;
const RECORDER_MAGIC = 0x5246_434e;
const RECORDER_VERSION = 1;
export const HEADER = { magic: 0, version: 4, pid: 8, jobRank: 12, lastSequence: 16, unlisted: 24 } as const;
export const FIRST_ENTRY = 4096;
export const ENTRY_BYTES = 64;
/** Of one entry. */
export const ENTRY = {
  sequence: 0,
  enqueuedNs: 8,
  startedNs: 16,
  endedNs: 24,
  count: 32,
  operation: 40,
  peer: 44,
  lastPeer: 48,
  communicator: 52,
  hash: 54,
  flags: 56,
  collective: 58,
  call: 59,
  algorithm: 60,
  protocol: 61,
  channels: 62,
  stream: 63,
} as const;
export const FIRST_COMMUNICATOR = FIRST_ENTRY + RECORDER_ENTRIES * ENTRY_BYTES;
export const COMMUNICATOR_BYTES = 64;
export const COMMUNICATOR = {
  communicator: 0,
  firstSequence: 8,
  epoch: 16,
  size: 20,
  rank: 24,
  generation: 28,
  name: 32,
} as const;
const NAME_BYTES = 32;
/** A rank's clock and counts are below 2^63: their differences have a sign. */
const LIMIT = 2 ** 63;
const DATA_TYPES = 12;

interface ListedCommunicator {
  readonly communicator: RecordedCommunicator;
  /** Entries before it name another one by this index. */
  readonly firstSequence: number;
}

type ReadProcess = Omit<RecordedProcess, 'gpu' | 'entries'> & { readonly entries: readonly RecorderEntry[] };

/** The last operations, at most `last`, the oldest first. Null if the process has not begun to write, or writes another version. */
export function readRecorder(bytes: Uint8Array, last: number): ReadProcess | null {
  if (bytes.length < RECORDER_BYTES) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (view.getUint32(HEADER.magic, true) !== RECORDER_MAGIC) return null;
  if (view.getUint32(HEADER.version, true) !== RECORDER_VERSION) return null;
  const recorded = readU64(view, HEADER.lastSequence);
  if (!Number.isSafeInteger(recorded)) return null;
  const communicators = readCommunicators(view);
  const firstOf = new Map(communicators.map((one) => [one.communicator.index, one.firstSequence]));
  const entries: RecorderEntry[] = [];
  const held = Math.min(recorded, RECORDER_ENTRIES);
  for (let sequence = Math.max(1, recorded - Math.min(held, last) + 1); sequence <= recorded; sequence++) {
    const entry = readEntry(view, sequence);
    if (entry !== null && (firstOf.get(entry.communicator) ?? LIMIT) <= sequence) entries.push(entry);
  }
  return {
    rank: view.getInt32(HEADER.jobRank, true),
    pid: view.getUint32(HEADER.pid, true),
    recorded,
    oldest: recorded === 0 ? 0 : recorded - held + 1,
    unlisted: view.getUint32(HEADER.unlisted, true),
    communicators: communicators.map(({ communicator }) => communicator),
    entries,
  };
}

/** Null if the process writes it just now, or what it holds is none. */
function readEntry(view: DataView, sequence: number): RecorderEntry | null {
  const at = FIRST_ENTRY + ((sequence - 1) % RECORDER_ENTRIES) * ENTRY_BYTES;
  if (readU64(view, at + ENTRY.sequence) !== sequence) return null;
  const entry = {
    sequence,
    enqueuedNs: readU64(view, at + ENTRY.enqueuedNs),
    startedNs: readU64(view, at + ENTRY.startedNs),
    endedNs: readU64(view, at + ENTRY.endedNs),
    count: readU64(view, at + ENTRY.count),
    operation: view.getUint32(at + ENTRY.operation, true),
    peer: view.getUint32(at + ENTRY.peer, true),
    lastPeer: view.getUint32(at + ENTRY.lastPeer, true),
    communicator: view.getUint16(at + ENTRY.communicator, true),
    hash: view.getUint16(at + ENTRY.hash, true),
    flags: view.getUint16(at + ENTRY.flags, true),
    collective: view.getUint8(at + ENTRY.collective),
    call: view.getUint8(at + ENTRY.call),
    algorithm: view.getUint8(at + ENTRY.algorithm),
    protocol: view.getUint8(at + ENTRY.protocol),
    channels: view.getUint8(at + ENTRY.channels),
    stream: view.getUint8(at + ENTRY.stream),
  };
  if (readU64(view, at + ENTRY.sequence) !== sequence) return null;
  return isPlausible(entry) ? entry : null;
}

function isPlausible(entry: RecorderEntry): boolean {
  const { enqueuedNs, startedNs, endedNs, count, collective, call, algorithm, protocol } = entry;
  return (
    Math.max(enqueuedNs, startedNs, endedNs, count) < LIMIT &&
    collective < COLLECTIVES.length &&
    call % 16 < DATA_TYPES &&
    algorithm < ALGORITHMS.length &&
    protocol < PROTOCOLS.length
  );
}

function readCommunicators(view: DataView): ListedCommunicator[] {
  const found: ListedCommunicator[] = [];
  for (let index = 0; index < RECORDER_COMMUNICATORS; index++) {
    const at = FIRST_COMMUNICATOR + index * COMMUNICATOR_BYTES;
    const firstSequence = readU64(view, at + COMMUNICATOR.firstSequence);
    if (firstSequence === 0) continue;
    const [size, rank] = [view.getUint32(at + COMMUNICATOR.size, true), view.getUint32(at + COMMUNICATOR.rank, true)];
    if (rank >= size) continue;
    const communicator = {
      index,
      id: view
        .getBigUint64(at + COMMUNICATOR.communicator, true)
        .toString(16)
        .padStart(16, '0'),
      epoch: view.getUint32(at + COMMUNICATOR.epoch, true),
      size,
      rank,
      name: readName(view, at + COMMUNICATOR.name),
    };
    found.push({ communicator, firstSequence });
  }
  return found;
}

/** Letters that a terminal could take for a command become a question mark. */
function readName(view: DataView, at: number): string {
  const bytes = Buffer.from(view.buffer, view.byteOffset + at, NAME_BYTES);
  const end = bytes.indexOf(0);
  return bytes.toString('latin1', 0, end === -1 ? NAME_BYTES : end).replaceAll(/[^ -~]/g, '?');
}

/** Answers the launcher's query about the processes of this host. */
export function answerRecorder(
  { payload, request }: Frame,
  recorders: readonly Uint8Array[],
  gpus: { of(rank: number): HostGpu | null },
  send: (frame: Frame) => void,
): void {
  for (const answer of recorderAnswers(parseRecorderQuery(payload), request, recorders, gpus)) send(answer);
}

/** The frames that answer a query about the processes of a host. */
function* recorderAnswers(
  { last, full }: RecorderQuery,
  request: number,
  recorders: readonly Uint8Array[],
  gpus: { of(rank: number): HostGpu | null },
): Generator<Frame> {
  const nowNs = Number(process.hrtime.bigint()); // CLOCK_MONOTONIC, as the engines' clock
  const frame = (answer: RecorderAnswer): Frame =>
    makeFrame(FrameKind.recorder, { request, payload: encodeJson(answer) });
  yield frame({ type: 'clock', nowNs });
  const wanted = new Set(full);
  for (const bytes of recorders) {
    const rank =
      bytes.length < RECORDER_BYTES ? -1 : new DataView(bytes.buffer, bytes.byteOffset).getInt32(HEADER.jobRank, true);
    const read = readRecorder(bytes, wanted.has(rank) ? RECORDER_ENTRIES : last);
    if (read === null || read.rank < -1 || read.recorded === 0) continue;
    const { entries, ...facts } = read;
    yield frame({ type: 'process', ...facts, gpu: gpus.of(rank), entries: encodeColumns(entries) });
  }
  yield frame({ type: 'end' });
}
