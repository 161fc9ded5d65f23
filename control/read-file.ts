/** Files that somebody names: a wrong name may be that of a device without an end, or of gigabytes. */
import { closeSync, openSync, readSync } from 'node:fs';

const CHUNK_BYTES = 64 * 1024;

/** The file has more bytes than it may have. */
export class TooLargeError extends Error {
  override readonly name = 'TooLargeError';

  constructor(maximum: number) {
    super(`it has more than ${maximum / 1024 / 1024} MiB`);
  }
}

/** The bytes of a file of at most `maximum` bytes; `file`: its path, or an open descriptor. @throws TooLargeError, and as node:fs does */
export function readFileUpTo(file: string | number, maximum: number): Buffer {
  const descriptor = typeof file === 'number' ? file : openSync(file, 'r');
  try {
    const chunks: Buffer[] = [];
    for (let bytes = 0; bytes <= maximum; ) {
      const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
      const length = readSync(descriptor, chunk);
      if (length === 0) return Buffer.concat(chunks);
      bytes += length;
      chunks.push(chunk.subarray(0, length));
    }
    throw new TooLargeError(maximum);
  } finally {
    if (descriptor !== file) closeSync(descriptor);
  }
}
