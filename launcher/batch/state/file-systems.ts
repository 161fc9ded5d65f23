/** Which file systems may hold a batch: its database needs locks that work and writes that reach a disk. Numbers: statfs(2) and linux/magic.h. */
import { statfsSync } from 'node:fs';

const SHARED: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB'],
  [0x0bd00bd0, 'Lustre'],
  [0x47504653, 'GPFS'],
  [0x65735546, 'FUSE'],
  [0x01021997, '9p'],
  [0x5346414f, 'AFS'],
  [0x00c36400, 'Ceph'],
  [0x19830326, 'BeeGFS'],
]);
const PASSING: ReadonlyMap<number, string> = new Map([
  [0x01021994, 'tmpfs'],
  [0x858458f6, 'ramfs'],
  [0x794c7630, 'overlay'],
]);

export type Keeping =
  | { readonly kind: 'lasting' }
  /** Gone with the host or its container. */
  | { readonly kind: 'passing'; readonly name: string }
  /** Other hosts have it too. */
  | { readonly kind: 'shared'; readonly name: string };

/** Throws as node:fs does where there is no such directory. */
export function keepingOf(directory: string): Keeping {
  const { type } = statfsSync(directory);
  const number = type >>> 0; // some systems give it as a negative number
  const shared = SHARED.get(number);
  if (shared !== undefined) return { kind: 'shared', name: shared };
  const passing = PASSING.get(number);
  return passing === undefined ? { kind: 'lasting' } : { kind: 'passing', name: passing };
}
