/** ncclResult_t off the wire. */
import { NcclResult } from './bootstrap.ts';
import type { ByteReader } from './bytes.ts';

const known = Object.values(NcclResult);

export function readResult(reader: ByteReader): NcclResult {
  const number = reader.u32('result');
  const result = known.find((value) => value === number);
  if (result === undefined) throw reader.malformed(`${number} is no ncclResult_t`);
  return result;
}
