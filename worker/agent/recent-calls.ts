/** The collectives that ranks have called last, from their flight recorders: what the telemetry page has no room for. */
import { COLLECTIVE_ARGUMENTS } from '../../control/collectives.ts';
import type { NumberedCall } from '../../control/messages/hang.ts';
import { MAX_RECENT_CALLS } from '../../control/messages/hang.ts';
import type { RecorderEntry } from '../../control/messages/recorder.ts';
import { COLLECTIVES } from '../../control/plan/layout.ts';
import { elementTypes } from '../engine/elements.ts';
import { readRecorder } from './recorder.ts';
import { OPERATORS } from './slot-calls.ts';

/** Records of each process that are looked at. */
const LOOKED_AT = 256;

/** By communicator, epoch and rank. */
export type RecentCalls = ReadonlyMap<string, readonly NumberedCall[]>;

export function recentCalls(recorders: readonly Uint8Array[]): RecentCalls {
  const found = new Map<string, NumberedCall[]>();
  for (const recorder of recorders) {
    const read = readRecorder(recorder, LOOKED_AT);
    for (const { index, id, epoch, rank } of read?.communicators ?? []) {
      const own = (read?.entries ?? []).filter(({ communicator }) => communicator === index).flatMap(callOf);
      if (own.length > 0) found.set(recentName(id, epoch, rank), own.slice(-MAX_RECENT_CALLS));
    }
  }
  return found;
}

export function recentName(communicator: string, epoch: number, rank: number): string {
  return `${communicator}:${epoch}:${rank}`;
}

/** Nothing of sends and receives. */
function callOf({ operation, collective: number, count, call, peer }: RecorderEntry): NumberedCall[] {
  const collective = COLLECTIVES[number];
  if (collective === undefined || collective === 'sendRecv') return [];
  const args = COLLECTIVE_ARGUMENTS[collective];
  const isBarrier = collective === 'barrier';
  return [
    {
      number: operation,
      collective,
      count,
      type: isBarrier ? null : (elementTypes[call & 0xf] ?? null),
      operator: args.operator ? (OPERATORS[call >> 4] ?? '?') : null,
      root: args.root ? peer : null,
    },
  ];
}
