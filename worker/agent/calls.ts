/** What a rank has called, from its telemetry page. */
import type { Calls } from '../../control/messages/calls.ts';
import type { Key } from '../../control/messages/key.ts';
import type { Engine } from './engine.ts';
import { callHistory } from './slot-calls.ts';
import { isStuck } from './stall.ts';
import { communicatorName, findSlot } from './telemetry.ts';

export interface ReadCalls extends Calls {
  /** It has failed, or waits for something that does not come. */
  readonly stuck: boolean;
}

/** Null if the page has no slot for the rank, or is being written right now. */
export function readCalls({ telemetry, pid }: Engine, key: Key, rank: number): ReadCalls | null {
  const slot = findSlot(telemetry, communicatorName(key), key.epoch, rank);
  const history = slot === null ? null : callHistory(slot);
  if (slot === null || history === null) return null;
  const { count, hashes, last } = history;
  return { rank, pid, count, hashes, last, ...isStuck(slot) };
}
