/**
 * Arguments, variables and paths are bytes to the system, strings to us. Where they are no UTF-8, each such byte is a lone surrogate from U+DC80 to
 * U+DCFF (as PEP 383 has it), which JSON passes on and encodeSystemText makes a byte again.
 */
import { isUtf8 } from 'node:buffer';
import { readFileSync, readlinkSync } from 'node:fs';

/** What Node puts in place of bytes that are no UTF-8. */
const REPLACEMENT = '\uFFFD';
const ESCAPE_BASE = 0xdc00;
const ESCAPED = /[\uDC80-\uDCFF]/u;
const MAX_SEQUENCE = 4;

export function decodeSystemText(bytes: Buffer): string {
  const text = bytes.toString('utf8');
  if (!text.includes(REPLACEMENT)) return text;
  let decoded = '';
  for (let at = 0; at < bytes.length; ) {
    const length = sequenceLength(bytes, at);
    decoded +=
      length === 0 ? String.fromCharCode(ESCAPE_BASE + (bytes[at] ?? 0)) : bytes.toString('utf8', at, at + length);
    at += Math.max(length, 1);
  }
  return decoded;
}

/** Bytes of the character that begins there; 0: none does. */
function sequenceLength(bytes: Buffer, at: number): number {
  for (let length = 1; length <= MAX_SEQUENCE; length += 1) if (isUtf8(bytes.subarray(at, at + length))) return length;
  return 0;
}

export function encodeSystemText(text: string): Buffer {
  if (!isEscaped(text)) return Buffer.from(text);
  const parts = Array.from(text, (character) => {
    return ESCAPED.test(character) ? Buffer.of(character.charCodeAt(0) - ESCAPE_BASE) : Buffer.from(character);
  });
  return Buffer.concat(parts);
}

/** True if the text has bytes that are no UTF-8. */
export function isEscaped(text: string): boolean {
  return ESCAPED.test(text);
}

/** A path for node:fs, which encodes strings as UTF-8. */
export function systemPath(path: string): string | Buffer {
  return isEscaped(path) ? encodeSystemText(path) : path;
}

/** The words of our command line, without Node and the script. */
export function systemArguments(): readonly string[] {
  const words = process.argv.slice(2);
  if (!words.some((word) => word.includes(REPLACEMENT))) return words;
  return systemStrings('/proc/self/cmdline').slice(-words.length);
}

/** Our environment; what Node has changed in it counts. */
export function systemEnvironment(): Readonly<Record<string, string | undefined>> {
  const changed = Object.entries(process.env).filter(([, value]) => value?.includes(REPLACEMENT) === true);
  if (changed.length === 0) return process.env;
  const entries = systemStrings('/proc/self/environ');
  const exact = changed.flatMap(([name]) => {
    const entry = entries.find((candidate) => candidate.startsWith(`${name}=`));
    return entry === undefined ? [] : [[name, entry.slice(name.length + 1)] as const];
  });
  return { ...process.env, ...Object.fromEntries(exact) };
}

/** The directory that we stand in. @throws where it is gone */
export function systemDirectory(): string {
  const directory = process.cwd();
  if (!directory.includes(REPLACEMENT)) return directory;
  return decodeSystemText(readlinkSync('/proc/self/cwd', { encoding: 'buffer' }));
}

/** Of a file with a NUL behind each. */
function systemStrings(path: string): string[] {
  const bytes = readFileSync(path);
  const strings: string[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf(0, at);
    strings.push(decodeSystemText(bytes.subarray(at, end)));
    at = end + 1;
  }
  return strings;
}
