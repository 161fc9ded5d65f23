/** Bytes of a batch file as text. */
import { usageError } from '../../model/usage-error.ts';

/** A thousand jobs take some 200 KiB. */
export const maximumBytes = 1024 * 1024;

const mebibyte = 1024 * 1024;
const lineFeed = 10;

/** Removes a byte order mark. Throws a FailureError (usage) if the bytes are too many or no UTF-8. */
export function decodeBatchFile(path: string, content: Uint8Array): string {
  if (content.length > maximumBytes) {
    const size = `${(content.length / mebibyte).toFixed(1)} MiB`;
    throw usageError(
      `${path} has ${size}, and a batch file at most ${maximumBytes / mebibyte} MiB`,
      'write many alike jobs as one job with an array, and data into files of their own',
    );
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(content);
  } catch {
    throw notUtf8(path, content);
  }
}

function notUtf8(path: string, content: Uint8Array): Error {
  const [first, second] = content;
  if ((first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)) {
    return usageError(`${path} is UTF-16, and not UTF-8`, `iconv -f UTF-16 -t UTF-8 ${path} converts it`);
  }
  let start = 0;
  for (let line = 1; start <= content.length; line += 1) {
    const feed = content.indexOf(lineFeed, start);
    const end = feed === -1 ? content.length : feed;
    const bad = badCharacter(content.subarray(start, end));
    if (bad !== null) {
      const position = { source: path, line, column: bad.column, text: bad.text, length: 1 };
      const shown = `0x${(content[start + bad.byte] ?? 0).toString(16).padStart(2, '0')}`;
      const remedy = `save the file as UTF-8; iconv -f LATIN1 -t UTF-8 ${path} converts an older one`;
      return usageError(`the byte ${shown} is not UTF-8`, remedy, position);
    }
    start = end + 1;
  }
  return usageError(`${path} is not UTF-8`, 'save the file as UTF-8');
}

interface BadCharacter {
  readonly text: string;
  readonly column: number;
  /** Offset from the beginning of the line. */
  readonly byte: number;
}

/** Returns the first replacement character that the bytes themselves do not spell. */
function badCharacter(line: Uint8Array): BadCharacter | null {
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(line).replace(/\r$/u, '');
  let byte = 0;
  let column = 1;
  for (const character of text) {
    const spelt = Buffer.from(character);
    if (character === '\ufffd' && !spelt.equals(line.subarray(byte, byte + spelt.length)))
      return { text, column, byte };
    byte += spelt.length;
    column += character.length;
  }
  return null;
}
