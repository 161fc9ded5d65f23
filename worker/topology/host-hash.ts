/** Number by which NCCL distinguishes hosts, as in its dumps (host_hash). */
import { hostname } from 'node:os';
import { readText } from './system-files.ts';

/** Of NCCL_HOSTID, or else of host name and boot id: NCCL's getHostHash, whose hash is Bernstein's second (times 33, exclusive or) in 64 bits. */
export function hostHash(root: string, environment: NodeJS.ProcessEnv, name = hostname()): string {
  const given = environment['NCCL_HOSTID'] ?? '';
  const text = given === '' ? name + readText(root, 'proc/sys/kernel/random/boot_id') : given;
  let hash = 5381n;
  for (const byte of Buffer.from(text)) hash = BigInt.asUintN(64, hash * 33n) ^ BigInt(byte);
  return `0x${hash.toString(16)}`;
}
