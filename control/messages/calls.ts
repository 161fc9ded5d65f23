/** What ranks have called so far, as their agent reads it from their telemetry pages (native/include/ncclrun.h). */
import { NO_RANK } from './bootstrap.ts';
import { ByteReader, ByteWriter } from './bytes.ts';
import { readKey, writeKey } from './key.ts';
import type { Key } from './key.ts';

/** A page remembers 16. */
const MAX_HASHES = 64;
/** Name, type and count. */
const MAX_CALL = 400;

export interface Calls {
  readonly rank: number;
  /** As the rank's host sees it. */
  readonly pid: number;
  /** How many collectives have begun. */
  readonly count: number;
  /** Rolling hashes, 16 bits of them, up to and including the collectives number `count`, `count` - 1, …, as far as they are remembered. */
  readonly hashes: readonly number[];
  /** The last one, for people. */
  readonly last: string;
  /** The rank that it waits for, where that is known. */
  readonly waitingFor: number | null;
}

export function encodeCalls(key: Key, all: readonly Calls[]): Uint8Array {
  const writer = writeKey(new ByteWriter(), key).u32(all.length);
  for (const { rank, pid, count, hashes, last, waitingFor } of all) {
    writer.u32(rank).u32(pid).u64(count).u32(hashes.length);
    for (const hash of hashes) writer.u32(hash);
    writer.string(last).u32(waitingFor ?? NO_RANK);
  }
  return writer.finish();
}

export function decodeCalls(payload: Uint8Array): { readonly key: Key; readonly all: readonly Calls[] } {
  const reader = new ByteReader(payload, 'calls of ranks');
  const key = readKey(reader);
  const all: Calls[] = [];
  const length = reader.u32('ranks');
  for (let index = 0; index < length; index++) {
    const [rank, pid, count] = [reader.u32('rank'), reader.u32('pid'), reader.size('number of collectives')];
    const hashes: number[] = [];
    const hashCount = reader.u32('hashes');
    if (hashCount > MAX_HASHES) throw reader.malformed(`${hashCount} hashes of a rank`);
    for (let left = hashCount; left > 0; left--) hashes.push(reader.u32('hash'));
    const last = reader.string('call');
    if (last.length > MAX_CALL) throw reader.malformed(`a call of ${last.length} characters`);
    const waitingFor = reader.u32('rank waited for');
    all.push({ rank, pid, count, hashes, last, waitingFor: waitingFor === NO_RANK ? null : waitingFor });
  }
  reader.end();
  return { key, all };
}
