/** What a rank has called in one communicator, from its slot of the telemetry page. */
import { COLLECTIVE_ARGUMENTS, COLLECTIVES, NO_ARGUMENTS } from '../../control/collectives.ts';
import { describeCall } from '../../control/describe-call.ts';
import type { CallArguments, CallHistory } from '../../control/messages/hang.ts';
import { readU64 } from '../../control/plan/u64.ts';
import { elementBytes, elementTypes } from '../engine/elements.ts';
import { HASHES, SLOT } from './slot-layout.ts';

/** Number of hashes read: the engine may be overwriting the oldest one that the page keeps. */
const REMEMBERED = HASHES - 1;
export const OPERATORS = ['sum', 'prod', 'max', 'min', 'avg', 'pre-multiplied sum'];

/** Null if the engine began another collective meanwhile. */
export function callHistory(slot: DataView): CallHistory | null {
  const count = readU64(slot, SLOT.hashed);
  const hashes: number[] = [];
  for (let number = count; number > Math.max(0, count - REMEMBERED); number--) {
    hashes.push(slot.getUint16(SLOT.recentHashes + 2 * (number % HASHES), true));
  }
  const call = count === 0 ? null : lastCall(slot);
  const history = { count, hashes, last: call === null ? 'no collective' : describeCall(call), call, recent: [] };
  return readU64(slot, SLOT.hashed) === count ? history : null;
}

function lastCall(slot: DataView): CallArguments {
  const collective = COLLECTIVES[slot.getUint32(SLOT.hashedCollective, true)];
  const args = collective === undefined ? NO_ARGUMENTS : COLLECTIVE_ARGUMENTS[collective];
  const call = slot.getUint32(SLOT.hashedCall, true);
  const type = elementTypes[call & 0xff];
  const ranks = args.perRank ? Math.max(1, slot.getUint32(SLOT.size, true)) : 1;
  return {
    collective: collective ?? 'an unknown collective',
    count: readU64(slot, SLOT.hashedBytes) / (type === undefined ? 1 : elementBytes[type]) / ranks,
    type: type ?? null,
    operator: args.operator ? (OPERATORS[(call >>> 8) & 0xff] ?? '?') : null,
    root: args.root ? call >>> 16 : null,
  };
}
