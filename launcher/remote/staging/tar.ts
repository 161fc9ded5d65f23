/** Writes the archive format that every tar reads: POSIX.1-1988 ustar (pubs.opengroup.org, pax, "ustar Interchange Format"). */

const BLOCK_BYTES = 512;
/** npm's date for everything that it packs: the same files make the same archive. 1985-10-26, seconds since 1970. */
const MODIFIED = 499_162_500;
const REGULAR_FILE = '0';

export interface TarEntry {
  /** At most 100 bytes. */
  readonly path: string;
  readonly mode: number;
  readonly content: Uint8Array;
}

/** The archive in pieces that follow each other: header, content and padding of each file, then the end. @throws RangeError for a long path */
export function tarPieces(entries: readonly TarEntry[]): Uint8Array[] {
  const pieces = entries.flatMap(({ path, mode, content }) => [
    header(path, mode, content.length),
    content,
    new Uint8Array(-content.length & (BLOCK_BYTES - 1)),
  ]);
  return [...pieces, new Uint8Array(2 * BLOCK_BYTES)];
}

/**
 * The same bytes cut anew, each part of at most so many. Large contents are cut without being copied: a launcher that copies a whole Node has no time
 * for its hosts.
 */
export function* archivePieces(pieces: readonly Uint8Array[], bytes: number): Generator<Uint8Array> {
  let waiting: Uint8Array[] = [];
  let room = bytes;
  for (const piece of pieces) {
    if (piece.length > room && waiting.length > 0) {
      yield Buffer.concat(waiting);
      [waiting, room] = [[], bytes];
    }
    let rest = piece;
    for (; rest.length > room; rest = rest.subarray(bytes)) yield rest.subarray(0, bytes);
    waiting.push(rest);
    room -= rest.length;
  }
  if (waiting.length > 0) yield Buffer.concat(waiting);
}

function header(path: string, mode: number, size: number): Buffer {
  const block = Buffer.alloc(BLOCK_BYTES);
  if (Buffer.byteLength(path) > 100) throw new RangeError(`${path} is too long a path for an archive`);
  block.write(path, 0);
  writeOctal(block, mode, 100, 7);
  writeOctal(block, 0, 108, 7);
  writeOctal(block, 0, 116, 7);
  writeOctal(block, size, 124, 11);
  writeOctal(block, MODIFIED, 136, 11);
  block.write(' '.repeat(8), 148);
  block.write(REGULAR_FILE, 156);
  block.write('ustar\u000000', 257, 'latin1');
  const sum = block.reduce((total, byte) => total + byte, 0);
  writeOctal(block, sum, 148, 6);
  block[154] = 0;
  return block;
}

/** Ends in a zero byte, that was there. */
function writeOctal(block: Buffer, value: number, offset: number, digits: number): void {
  block.write(value.toString(8).padStart(digits, '0'), offset);
}
