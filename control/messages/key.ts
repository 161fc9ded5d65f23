/** The name under which contributions meet: unique id, epoch (raised by a restart) and round. */
import { UNIQUE_ID_BYTES } from './bootstrap.ts';
import type { ByteReader, ByteWriter } from './bytes.ts';
import { describePmiBarrier, PMI_ID } from './pmi-id.ts';
import { isShrinkRound, isSplitRound, JOIN_ROUND, SHRINK_ROUND, SPLIT_ROUND } from './rendezvous.ts';

export interface Key {
  /** UNIQUE_ID_BYTES bytes as latin1 text, so that keys can name entries of a Map. */
  readonly id: string;
  readonly epoch: number;
  readonly round: number;
}

export function readKey(reader: ByteReader): Key {
  return { id: readId(reader), epoch: reader.u32('epoch'), round: reader.u32('round') };
}

/** The unique id alone, where epoch and round are sent otherwise. */
export function readId(reader: ByteReader): string {
  const bytes = reader.bytes(UNIQUE_ID_BYTES, 'unique id');
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
}

export function writeKey(writer: ByteWriter, key: Key): ByteWriter {
  return writer.bytes(idBytes(key.id)).u32(key.epoch).u32(key.round);
}

export function idBytes(id: string): Uint8Array {
  return Buffer.from(id, 'latin1');
}

/** Key of a Map. */
export function keyName(key: Key): string {
  return `${key.id}${key.epoch}:${key.round}`;
}

/** The communicator of a key, whatever its round, as the key of a Map. */
export function communicatorKeyName(key: Key): string {
  return keyName({ ...key, round: JOIN_ROUND });
}

/** Both keys are rounds of one communicator. */
export function areOfOneCommunicator(one: Key, other: Key): boolean {
  return one.id === other.id && one.epoch === other.epoch;
}

/** How people read a key: four of the random bytes of its unique id. */
export function describeKey(key: Key): string {
  if (key.id === PMI_ID) return describePmiBarrier(key.round);
  const short = Buffer.from(key.id.slice(16, 20), 'latin1').toString('hex');
  if (key.round === JOIN_ROUND) return `communicator ${short}`;
  if (isShrinkRound(key.round)) return `shrink ${key.round - SHRINK_ROUND + 1} of communicator ${short}`;
  if (isSplitRound(key.round)) return `split ${key.round - SPLIT_ROUND + 1} of communicator ${short}`;
  return `round ${key.round} of communicator ${short}`;
}

export const KEY_BYTES = UNIQUE_ID_BYTES + 8;
