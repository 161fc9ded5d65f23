/** Reads the telemetry pages of an engine (native/include/ncclrun.h, ncclrunTelemetryPage). The engine writes while we read. */
import { COLLECTIVES } from '../../control/plan/layout.ts';
import type { CollectiveName } from '../../control/plan/types.ts';
import { readU64 } from '../../control/plan/u64.ts';
import type { CallHistory } from '../../control/messages/hang.ts';
import type { Key } from '../../control/messages/key.ts';
import { callHistory } from './slot-calls.ts';
import { SLOT } from './slot-layout.ts';

export const TELEMETRY_BYTES = 8192;
const TELEMETRY_MAGIC = 0x5054_434e;
const TELEMETRY_VERSION = 3;
export const SLOTS = 40;
const FIRST_SLOT = 512;
const SLOT_BYTES = 192;
/** Of `waitingFor`. */
export const WAITS_FOR_NOBODY = 0xffff_ffff;

const STATES = ['free', 'idle', 'queued', 'running', 'waiting', 'failed'] as const;
type EngineState = (typeof STATES)[number];

/** One communicator of one process. */
export interface TelemetrySlot {
  /** 16 hexadecimal digits: bytes 16 to 23 of its unique id, read as a number. */
  readonly communicator: string;
  readonly rank: number;
  readonly size: number;
  readonly epoch: number;
  readonly state: EngineState;
  /** Operation last begun and last ended, from 1; 0: none yet. */
  readonly operation: number;
  readonly completed: number;
  readonly collective: CollectiveName | null;
  readonly bytes: number;
  /** Rolling hash of all operations so far, hexadecimal. */
  readonly operationHash: string;
  /** CLOCK_MONOTONIC, nanoseconds. */
  readonly startedNs: number;
  readonly lastProgressNs: number;
  /** Rank that is waited for, or null. */
  readonly waitingFor: number | null;
  /** Null if the engine was writing them. */
  readonly calls: CallHistory | null;
}

export interface TelemetryPage {
  readonly pid: number;
  /** Rank in the job, -1 if unknown. */
  readonly jobRank: number;
  /** Those in use. */
  readonly slots: readonly TelemetrySlot[];
}

/** Null if the engine has not begun to write it, or writes another version. */
export function decodeTelemetry(page: Uint8Array): TelemetryPage | null {
  if (page.length < TELEMETRY_BYTES) return null;
  const view = new DataView(page.buffer, page.byteOffset, page.byteLength);
  if (view.getUint32(0, true) !== TELEMETRY_MAGIC || view.getUint32(4, true) !== TELEMETRY_VERSION) return null;
  const slots: TelemetrySlot[] = [];
  for (let index = 0; index < SLOTS; index++) {
    const at = FIRST_SLOT + index * SLOT_BYTES;
    const slot = decodeSlot(view, at);
    if (slot.state !== 'free' && view.getUint32(at + SLOT.left, true) === 0) slots.push(slot);
  }
  return { pid: view.getUint32(8, true), jobRank: view.getInt32(12, true), slots };
}

/** The rank of the communicator that this process lost and failed for, or null; also after it has left the communicator. */
export function lostPeer(pages: readonly Uint8Array[], key: Key): number | null {
  for (const slot of slotsOf(pages)) {
    const lost = slot.getUint32(SLOT.lostPeer, true);
    if (lost !== 0 && hex64(slot, 0) === communicatorName(key) && slot.getUint32(SLOT.epoch, true) === key.epoch)
      return lost - 1;
  }
  return null;
}

/** The slot of one rank of a communicator, its fields at the offsets of ncclrunTelemetrySlot. */
export function findSlot(
  pages: readonly Uint8Array[],
  communicator: string,
  epoch: number,
  rank: number,
): DataView | null {
  for (const slot of slotsOf(pages)) {
    if (slot.getUint32(SLOT.state, true) === 0 || slot.getUint32(SLOT.left, true) !== 0) continue;
    if (slot.getUint32(SLOT.rank, true) !== rank || slot.getUint32(SLOT.epoch, true) !== epoch) continue;
    if (hex64(slot, 0) === communicator) return slot;
  }
  return null;
}

function* slotsOf(pages: readonly Uint8Array[]): Generator<DataView> {
  for (const page of pages) {
    if (page.length < TELEMETRY_BYTES) continue;
    for (let index = 0; index < SLOTS; index++)
      yield new DataView(page.buffer, page.byteOffset + FIRST_SLOT + index * SLOT_BYTES, SLOT_BYTES);
  }
}

/** As TelemetrySlot.communicator has it. */
export function communicatorName({ id }: Key): string {
  return Buffer.from(id, 'latin1').readBigUInt64LE(16).toString(16).padStart(16, '0');
}

function decodeSlot(view: DataView, at: number): TelemetrySlot {
  const waitingFor = view.getUint32(at + 72, true);
  return {
    communicator: hex64(view, at),
    rank: view.getUint32(at + 8, true),
    size: view.getUint32(at + 12, true),
    operation: readU64(view, at + 16),
    completed: readU64(view, at + 24),
    bytes: readU64(view, at + 32),
    lastProgressNs: readU64(view, at + 40),
    operationHash: hex64(view, at + 48),
    startedNs: readU64(view, at + 56),
    collective: COLLECTIVES[view.getUint32(at + 64, true)] ?? null,
    state: STATES[view.getUint32(at + 68, true)] ?? 'free',
    waitingFor: waitingFor === WAITS_FOR_NOBODY ? null : waitingFor,
    epoch: view.getUint32(at + 76, true),
    calls: callHistory(new DataView(view.buffer, view.byteOffset + at, SLOT_BYTES)),
  };
}

function hex64(view: DataView, at: number): string {
  return view.getBigUint64(at, true).toString(16).padStart(16, '0');
}
