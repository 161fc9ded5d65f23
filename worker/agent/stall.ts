/** Stall detection: whether an engine waits for something that does not arrive, read from its telemetry pages. */
import type { Key } from '../../control/messages/key.ts';
import { readU64 } from '../../control/plan/u64.ts';
import { communicatorName, decodeTelemetry, WAITS_FOR_NOBODY } from './telemetry.ts';
import type { TelemetrySlot } from './telemetry.ts';

/** Without progress for this long, an operation that lacks a rank will not end. */
const STALL_NS = 300e6;
/** EngineState. */
const WAITING = 4;
const FAILED = 5;

export function isStalled(pages: readonly Uint8Array[], key: Key): boolean {
  const now = Number(process.hrtime.bigint()); // CLOCK_MONOTONIC, as the engine's clock
  return slotsOf(pages, key).some((slot) => isBusy(slot) && now - slot.lastProgressNs > STALL_NS);
}

/** An operation had begun and not ended. */
export function isInOperation(pages: readonly Uint8Array[], key: Key): boolean {
  return slotsOf(pages, key).some(isBusy);
}

/** The same of one slot as it lies in the page; also of a rank that has failed. */
export function isStuck(slot: DataView): { readonly stuck: boolean; readonly waitingFor: number | null } {
  const waitingFor = slot.getUint32(72, true);
  const state = slot.getUint32(68, true);
  const isBusy = state === WAITING || readU64(slot, 16) > readU64(slot, 24); // a kernel reports only the state `waiting`
  const stuck = state === FAILED || (isBusy && Number(process.hrtime.bigint()) - readU64(slot, 40) > STALL_NS);
  return { stuck, waitingFor: waitingFor === WAITS_FOR_NOBODY ? null : waitingFor };
}

function isBusy(slot: TelemetrySlot): boolean {
  // A kernel reports only the state `waiting`.
  return slot.state === 'waiting' || (slot.operation > slot.completed && slot.state !== 'failed');
}

function slotsOf(pages: readonly Uint8Array[], key: Key): TelemetrySlot[] {
  const name = communicatorName(key);
  const slots = pages.flatMap((page) => decodeTelemetry(page)?.slots ?? []);
  return slots.filter((slot) => slot.communicator === name && slot.epoch === key.epoch);
}
