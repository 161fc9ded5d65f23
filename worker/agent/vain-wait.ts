/** Whether an engine waits for something that does not come, read from its telemetry page. */
import type { Key } from '../../control/messages/key.ts';
import { communicatorName, decodeTelemetry } from './telemetry.ts';
import type { TelemetryPage, TelemetrySlot } from './telemetry.ts';

/** Without progress for this long, an operation that lacks a rank will not end. */
const VAIN_NS = 300e6;

export function waitsInVain(page: Uint8Array, key: Key): boolean {
  const now = Number(process.hrtime.bigint()); // CLOCK_MONOTONIC, as the engine's clock
  return slotsOf(decodeTelemetry(page), key).some((slot) => isBusy(slot) && now - slot.lastProgressNs > VAIN_NS);
}

/** An operation had begun and not ended. */
export function isInOperation(page: Uint8Array, key: Key): boolean {
  return slotsOf(decodeTelemetry(page), key).some(isBusy);
}

function isBusy(slot: TelemetrySlot): boolean {
  return slot.operation > slot.completed && slot.state !== 'failed';
}

function slotsOf(page: TelemetryPage | null, key: Key): TelemetrySlot[] {
  const name = communicatorName(key);
  return (page?.slots ?? []).filter((slot) => slot.communicator === name && slot.epoch === key.epoch);
}
