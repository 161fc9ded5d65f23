/**
 * A rank's contribution to a PMI barrier: u32 count, count × (str key, str value), the keys that it has put since its barrier before.
 * Keys and values are ASCII.
 */
import { ByteReader, ByteWriter } from './bytes.ts';

export type PmiPuts = ReadonlyMap<string, string>;

export function encodePuts(puts: PmiPuts): Uint8Array {
  const writer = new ByteWriter().u32(puts.size);
  for (const [key, value] of puts) writer.string(key).string(value);
  return writer.finish();
}

/** @throws ProtocolError if it is malformed */
export function decodePuts(bytes: Uint8Array): [key: string, value: string][] {
  const reader = new ByteReader(bytes, 'puts');
  const count = reader.u32('count');
  const puts: [string, string][] = [];
  for (let index = 0; index < count; index++) puts.push([reader.string('key'), reader.string('value')]);
  reader.end();
  return puts;
}
