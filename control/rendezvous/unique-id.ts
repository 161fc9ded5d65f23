/** Unique ids: 128 bytes that name a new communicator (messages/bootstrap.ts has the layout). */
import { UNIQUE_ID_BYTES, UNIQUE_ID_MAGIC } from '../messages/bootstrap.ts';
import { randomBytes } from '../random-bytes.ts';

const RANDOM_AT = 16;
const RANDOM_BYTES = 16;

export function makeUniqueId(jobId: string): Buffer {
  const id = Buffer.alloc(UNIQUE_ID_BYTES);
  id.writeBigUInt64LE(UNIQUE_ID_MAGIC, 0);
  id.writeBigUInt64LE(hashJobId(jobId), 8);
  randomBytes(RANDOM_BYTES).copy(id, RANDOM_AT);
  return id;
}

/** 64-bit FNV-1a of the UTF-8 bytes; 0 for an empty job id. */
export function hashJobId(jobId: string): bigint {
  if (jobId === '') return 0n;
  let hash = 0xcbf2_9ce4_8422_2325n;
  for (const byte of Buffer.from(jobId)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100_0000_01b3n);
  return hash;
}
