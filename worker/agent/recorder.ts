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
  NO_PEER,
  RECORDER_COMMUNICATORS,
  RECORDER_ENTRIES,
  RECORDER_GPUS,
  RecordFlag,
  type RecordedCommunicator,
  type RecordedProcess,
  type RecordedReplays,
  type RecorderAnswer,
  type RecorderEntry,
  type RecorderQuery,
} from '../../control/messages/recorder.ts';
import { encodeColumns } from '../../control/messages/recorder-columns.ts';
import { ALGORITHMS, COLLECTIVES, PROTOCOLS } from '../../control/plan/layout.ts';
import { readU64 } from '../../control/plan/u64.ts';
import { type GpuClock, readClocks } from './gpu-clock.ts';

const RECORDER_MAGIC = 0x5246_434e;
const RECORDER_VERSION = 3;
export const HEADER = {
  magic: 0,
  version: 4,
  pid: 8,
  jobRank: 12,
  lastSequence: 16,
  unlisted: 24,
  reserved32: 28,
  clocks: 32,
  clockOf: 544,
  reserved: 800,
} as const;
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
export const FIRST_REPLAY = FIRST_COMMUNICATOR + RECORDER_COMMUNICATORS * COMMUNICATOR_BYTES;
const RING_BYTES = RECORDER_ENTRIES * ENTRY_BYTES;
export const FIRST_EDGE = FIRST_REPLAY + RECORDER_GPUS * RING_BYTES;
export const RECORDER_EDGES = 512;
export const EDGE_BYTES = 128;
export const RECORDER_BYTES = FIRST_EDGE + RECORDER_EDGES * EDGE_BYTES;
const NAME_BYTES = 32;
/** A rank's clock and counts are below 2^63: their differences have a sign. */
const LIMIT = 2 ** 63;
const DATA_TYPES = 12;
/** Oldest entries of a full ring that a kernel may be writing over. */
const OVERWRITTEN = 64;

interface ListedCommunicator {
  readonly communicator: RecordedCommunicator;
  /** Entries before it name another one by this index. */
  readonly firstSequence: number;
  readonly generation: number;
  readonly clock: GpuClock | null;
}

interface ReadReplays extends Omit<RecordedReplays, 'entries'> {
  readonly entries: readonly RecorderEntry[];
}

interface ReadProcess extends Omit<RecordedProcess, 'gpu' | 'entries' | 'replays'> {
  readonly entries: readonly RecorderEntry[];
  readonly replays?: readonly ReadReplays[];
}

/** Null if the process has not begun to write, or writes another version. */
export function recorderView(bytes: Uint8Array): DataView | null {
  if (bytes.length < RECORDER_BYTES) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const isOurs =
    view.getUint32(HEADER.magic, true) === RECORDER_MAGIC && view.getUint32(HEADER.version, true) === RECORDER_VERSION;
  return isOurs ? view : null;
}

/** The last operations, at most `last`, the oldest first. Null if the process has not begun to write, or writes another version. */
export function readRecorder(
  bytes: Uint8Array,
  last: number,
  nowNs = Number(process.hrtime.bigint()),
): ReadProcess | null {
  const view = recorderView(bytes);
  if (view === null) return null;
  const recorded = readU64(view, HEADER.lastSequence);
  if (!Number.isSafeInteger(recorded)) return null;
  const clocks = readClocks(view, HEADER.clocks);
  const communicators = listCommunicators(view, clocks);
  const byIndex = new Map(communicators.map((one) => [one.communicator.index, one]));
  const entries: RecorderEntry[] = [];
  const held = Math.min(recorded, RECORDER_ENTRIES);
  for (let sequence = Math.max(1, recorded - Math.min(held, last) + 1); sequence <= recorded; sequence++) {
    const at = FIRST_ENTRY + ((sequence - 1) % RECORDER_ENTRIES) * ENTRY_BYTES;
    const entry = readEntry({ view, nowNs }, at, sequence, (index) => byIndex.get(index)?.clock ?? null);
    if (entry !== null && (byIndex.get(entry.communicator)?.firstSequence ?? LIMIT) <= sequence) entries.push(entry);
  }
  const replays = clocks.flatMap((clock, gpu) =>
    readReplays({ view, nowNs }, FIRST_REPLAY + gpu * RING_BYTES, clock, byIndex, last),
  );
  const errors = clocks.flatMap((clock) => clock?.errorNs(nowNs) ?? []);
  return {
    rank: view.getInt32(HEADER.jobRank, true),
    pid: view.getUint32(HEADER.pid, true),
    recorded,
    oldest: recorded === 0 ? 0 : recorded - held + 1,
    unlisted: view.getUint32(HEADER.unlisted, true),
    communicators: communicators.map(({ communicator }) => communicator),
    entries,
    ...(errors.length > 0 && { gpuErrorNs: Math.max(...errors) }),
    ...(replays.length > 0 && { replays }),
  };
}

/** What a GPU recorded. Its counter is in its own memory: the largest sequence tells how far it is. */
function readReplays(
  read: Reading,
  at: number,
  clock: GpuClock | null,
  byIndex: ReadonlyMap<number, ListedCommunicator>,
  last: number,
): ReadReplays[] {
  if (clock === null) return [];
  const { view } = read;
  let recorded = 0;
  for (let index = 0; index < RECORDER_ENTRIES; index++) {
    const sequence = readU64(view, at + index * ENTRY_BYTES);
    if (Number.isSafeInteger(sequence) && (sequence - 1) % RECORDER_ENTRIES === index)
      recorded = Math.max(recorded, sequence);
  }
  if (recorded === 0) return [];
  // A kernel may be writing over the oldest ones.
  const oldest = recorded <= RECORDER_ENTRIES ? 1 : recorded - RECORDER_ENTRIES + 1 + OVERWRITTEN;
  const entries: RecorderEntry[] = [];
  for (let sequence = Math.max(oldest, recorded - last + 1); sequence <= recorded; sequence++) {
    const entry = readEntry(read, at + ((sequence - 1) % RECORDER_ENTRIES) * ENTRY_BYTES, sequence, () => clock);
    if (entry !== null && entry.lastPeer === byIndex.get(entry.communicator)?.generation)
      entries.push({ ...entry, lastPeer: NO_PEER });
  }
  return [{ recorded, oldest, entries }];
}

/** Null if the process writes it just now, or what it holds is none. */
function readEntry(
  { view, nowNs }: Reading,
  at: number,
  sequence: number,
  clockOf: (communicator: number) => GpuClock | null,
): RecorderEntry | null {
  if (readU64(view, at + ENTRY.sequence) !== sequence) return null;
  const communicator = view.getUint16(at + ENTRY.communicator, true);
  const flags = view.getUint16(at + ENTRY.flags, true);
  const entry = {
    sequence,
    ...((flags & RecordFlag.gpuStamp) === 0
      ? hostTimes(view, at)
      : gpuTimes(view, at, flags, (stamp) => clockOf(communicator)?.monotonicNs(stamp, sequence, nowNs) ?? 0)),
    count: readU64(view, at + ENTRY.count),
    operation: view.getUint32(at + ENTRY.operation, true),
    peer: view.getUint32(at + ENTRY.peer, true),
    lastPeer: view.getUint32(at + ENTRY.lastPeer, true),
    communicator,
    hash: view.getUint16(at + ENTRY.hash, true),
    flags,
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

/** The memory, and when it is read. */
interface Reading {
  readonly view: DataView;
  readonly nowNs: number;
}

type Times = Pick<RecorderEntry, 'enqueuedNs' | 'startedNs' | 'endedNs'>;

function hostTimes(view: DataView, at: number): Times {
  return {
    enqueuedNs: readU64(view, at + ENTRY.enqueuedNs),
    startedNs: readU64(view, at + ENTRY.startedNs),
    endedNs: readU64(view, at + ENTRY.endedNs),
  };
}

/** Small differences between the call and the beginning are those of the clocks. */
function gpuTimes(view: DataView, at: number, flags: number, timeOf: (stamp: bigint) => number): Times {
  const [started, ended] = [ENTRY.startedNs, ENTRY.endedNs].map((field) => timeOf(view.getBigUint64(at + field, true)));
  if (started === undefined || ended === undefined) return { enqueuedNs: 0, startedNs: 0, endedNs: 0 };
  const enqueuedNs = (flags & RecordFlag.replay) === 0 ? readU64(view, at + ENTRY.enqueuedNs) : started;
  const startedNs = started === 0 ? 0 : Math.max(started, enqueuedNs);
  return { enqueuedNs, startedNs, endedNs: started === 0 || ended < started ? 0 : Math.max(ended, startedNs) };
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

function listCommunicators(view: DataView, clocks: readonly (GpuClock | null)[]): ListedCommunicator[] {
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
      name: readName(view, at + COMMUNICATOR.name, NAME_BYTES),
    };
    found.push({
      communicator,
      firstSequence,
      generation: view.getUint32(at + COMMUNICATOR.generation, true),
      clock: clocks[view.getUint8(HEADER.clockOf + index) - 1] ?? null,
    });
  }
  return found;
}

/** The communicators that a process takes part in. */
export function readCommunicators(view: DataView): RecordedCommunicator[] {
  return listCommunicators(view, []).map(({ communicator }) => communicator);
}

/** Letters that a terminal could take for a command become a question mark. */
export function readName(view: DataView, at: number, length: number): string {
  const bytes = Buffer.from(view.buffer, view.byteOffset + at, length);
  const end = bytes.indexOf(0);
  return bytes.toString('latin1', 0, end === -1 ? length : end).replaceAll(/[^ -~]/g, '?');
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
  const wanted = new Set(full);
  for (const bytes of recorders) {
    const rank =
      bytes.length < RECORDER_BYTES ? -1 : new DataView(bytes.buffer, bytes.byteOffset).getInt32(HEADER.jobRank, true);
    const read = readRecorder(bytes, wanted.has(rank) ? RECORDER_ENTRIES : last, nowNs);
    if (read === null || read.rank < -1 || read.recorded === 0) continue;
    const { entries, replays, ...facts } = read;
    const rings = replays?.map((ring) => ({ ...ring, entries: encodeColumns(ring.entries) }));
    const columns = { entries: encodeColumns(entries), ...(rings !== undefined && { replays: rings }) };
    yield frame({ type: 'process', ...facts, gpu: gpus.of(rank), ...columns });
  }
  yield frame({ type: 'end' });
}
