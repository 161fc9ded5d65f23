/** What a rank has called, from its telemetry page. */
import type { Calls } from '../../control/messages/calls.ts';
import type { Key } from '../../control/messages/key.ts';
import { COLLECTIVE_ARGUMENTS, COLLECTIVES, NO_ARGUMENTS } from '../../control/collectives.ts';
import { readU64 } from '../../control/plan/u64.ts';
import { elementBytes, elementTypes } from '../engine/elements.ts';
import type { Engine } from './engine.ts';
import { communicatorName, findSlot, HASHES, SLOT } from './telemetry.ts';
import { isStuck } from './stall.ts';

/** Number of hashes read: the engine may be overwriting the oldest one that the page keeps. */
const REMEMBERED = HASHES - 1;
const OPERATORS = ['sum', 'prod', 'max', 'min', 'avg', 'pre-multiplied sum'];

export interface ReadCalls extends Calls {
  /** It has failed, or waits for something that does not come. */
  readonly stuck: boolean;
}

/** Null if the page has no slot for the rank, or is being written right now. */
export function readCalls({ telemetry, pid }: Engine, key: Key, rank: number): ReadCalls | null {
  const slot = findSlot(telemetry, communicatorName(key), key.epoch, rank);
  if (slot === null) return null;
  const count = readU64(slot, SLOT.hashed);
  const hashes: number[] = [];
  for (let number = count; number > Math.max(0, count - REMEMBERED); number--) {
    hashes.push(slot.getUint16(SLOT.recentHashes + 2 * (number % HASHES), true));
  }
  const calls = { rank, pid, count, hashes, last: describe(slot), ...isStuck(slot) };
  return readU64(slot, SLOT.hashed) === count ? calls : null;
}

/** The words of describe in native/datapath/step_call.cc. */
function describe(slot: DataView): string {
  if (readU64(slot, SLOT.hashed) === 0) return 'no collective';
  const collective = COLLECTIVES[slot.getUint32(SLOT.hashedCollective, true)];
  if (collective === 'barrier') return 'a barrier';
  const args = collective === undefined ? NO_ARGUMENTS : COLLECTIVE_ARGUMENTS[collective];
  const call = slot.getUint32(SLOT.hashedCall, true);
  const type = elementTypes[call & 0xff];
  const ranks = args.perRank ? Math.max(1, slot.getUint32(SLOT.size, true)) : 1;
  const count = readU64(slot, SLOT.hashedBytes) / (type === undefined ? 1 : elementBytes[type]) / ranks;
  const operator = args.operator ? ` with ${OPERATORS[(call >>> 8) & 0xff] ?? '?'}` : '';
  const root = args.root ? `, root ${call >>> 16}` : '';
  return `${collective ?? 'an unknown collective'} of ${count} ${type ?? '?'}${operator}${root}`;
}
