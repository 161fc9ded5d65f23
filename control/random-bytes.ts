/** Random bytes from the kernel. Loading node:crypto for them would cost every job 3 ms. */
import { openSync, readSync } from 'node:fs';

/** Stays open: a launcher may need them when it has no descriptor left. */
let source: number | null = null;

export function randomBytes(count: number): Buffer {
  const bytes = Buffer.alloc(count);
  source ??= openSync('/dev/urandom', 'r');
  let read = 0;
  while (read < count) read += readSync(source, bytes, read, count - read, null);
  return bytes;
}
