/** Ranks of one communicator whose calls differ: the rolling hashes in their telemetry pages (native/include/ncclrun.h) say so. */
import { readU64 } from '../../control/plan/u64.ts';
import { COLLECTIVES } from '../../control/plan/layout.ts';
import type { Key } from '../../control/messages/key.ts';
import { communicatorName, findSlot } from './telemetry.ts';

/** Of the four hashes that a page keeps the oldest may be about to be overwritten. */
const REMEMBERED = 3;
const TYPES = 'int8 uint8 int32 uint32 int64 uint64 float16 float32 float64 bfloat16 float8e4m3 float8e5m2'.split(' ');
const OPERATORS = ['sum', 'prod', 'max', 'min', 'avg', 'an operator of its own'];
const WITH_OPERATOR = new Set(['allReduce', 'reduceScatter', 'reduce']);
const WITH_ROOT = new Set(['broadcast', 'reduce', 'gather', 'scatter']);

/** What one rank has called so far. */
export interface Calls {
  readonly rank: number;
  /** How many collectives have begun. */
  readonly count: number;
  /** By number of the collective, those that are remembered. */
  readonly hashes: ReadonlyMap<number, string>;
  /** The last one. */
  readonly last: string;
}

export interface Mismatch {
  /** Number of the first collective, from 1, that is known to differ. */
  readonly at: number;
  readonly one: Calls;
  readonly other: Calls;
}

/** Null if the page has no slot for the rank, or is being written right now. */
export function readCalls(page: Uint8Array, key: Key, rank: number): Calls | null {
  const slot = findSlot(page, communicatorName(key), key.epoch, rank);
  if (slot === null) return null;
  const count = readU64(slot, 88);
  const hashes = new Map<number, string>();
  for (let number = count; number > Math.max(0, count - REMEMBERED); number--) {
    hashes.set(number, slot.getBigUint64(96 + 8 * (number % 4), true).toString(16));
  }
  const last = describe(slot);
  return readU64(slot, 88) === count ? { rank, count, hashes, last } : null;
}

/** Compares all with the one that has called least. */
export function findMismatch(all: readonly Calls[]): Mismatch | null {
  const [one, ...others] = all.toSorted((a, b) => a.count - b.count);
  for (const other of one === undefined ? [] : others) {
    if (one !== undefined && differ(one, other, one.count)) {
      let at = one.count;
      while (differ(one, other, at - 1)) at--;
      return { at, one, other };
    }
  }
  return null;
}

/** `name` says who a rank is. Calls that did not stop the ranks are found only later, when the first that differed is no longer remembered. */
export function describeMismatch({ at, one, other }: Mismatch, name: (rank: number) => string): string {
  const exact = at === 1 || [one, other].every(({ hashes }) => hashes.has(at - 1));
  const where = exact
    ? 'from the communicator’s collective number'
    : 'at or before the communicator’s collective number';
  const says = ({ rank, count, last }: Calls): string =>
    exact && count === at ? `${name(rank)} called ${last}` : `${name(rank)} is at number ${count}, ${last}`;
  return `the ranks’ calls differ ${where} ${at}: ${says(one)}; ${says(other)}`;
}

function differ(one: Calls, other: Calls, number: number): boolean {
  const [here, there] = [one.hashes.get(number), other.hashes.get(number)];
  return here !== undefined && there !== undefined && here !== there;
}

function describe(slot: DataView): string {
  const collective = COLLECTIVES[slot.getUint32(64, true)] ?? 'an unknown collective';
  if (collective === 'barrier') return 'a barrier';
  const call = slot.getUint32(84, true);
  const operator = WITH_OPERATOR.has(collective) ? ` with ${OPERATORS[(call >>> 8) & 0xff] ?? '?'}` : '';
  const root = WITH_ROOT.has(collective) ? `, root ${call >>> 16}` : '';
  return `${collective} of ${readU64(slot, 32)} bytes of ${TYPES[call & 0xff] ?? '?'}${operator}${root}`;
}
