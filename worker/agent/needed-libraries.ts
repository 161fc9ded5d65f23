/** Which libraries a program is linked with: the DT_NEEDED entries of a 64-bit little-endian ELF file (System V ABI, chapters 4 and 5). */
import { closeSync, openSync, readSync } from 'node:fs';

const HEADER_BYTES = 64;
const PROGRAM_HEADER_BYTES = 56;
const MAX_PROGRAM_HEADERS = 128;
const MAX_TABLE_BYTES = 4 * 1024 * 1024;
/** 0x7f, "ELF", 64 bits, little-endian. */
const MAGIC = Buffer.from([0x7f, 0x45, 0x4c, 0x46, 2, 1]);

const Segment = { load: 1, dynamic: 2 } as const;
const Tag = { needed: 1n, stringTable: 5n, stringTableBytes: 10n } as const;

interface ProgramHeader {
  readonly type: number;
  readonly offset: number;
  readonly address: number;
  readonly bytes: number;
}

/** Empty for a file that is no such program, or damaged. Throws if it cannot be opened. */
export function neededLibraries(path: string): string[] {
  const file = openSync(path, 'r');
  try {
    return readNeeded((offset, bytes) => readAt(file, offset, bytes));
  } finally {
    closeSync(file);
  }
}

/** May be shorter, at the end of the file. */
type ReadAt = (offset: number, bytes: number) => Buffer;

function readAt(file: number, offset: number, bytes: number): Buffer {
  const buffer = Buffer.alloc(Math.min(bytes, MAX_TABLE_BYTES));
  return buffer.subarray(0, readSync(file, buffer, 0, buffer.length, offset));
}

function readNeeded(read: ReadAt): string[] {
  const segments = programHeaders(read);
  const dynamic = segments.find(({ type }) => type === Segment.dynamic);
  if (dynamic === undefined) return [];
  const entries = read(dynamic.offset, dynamic.bytes);
  const values = new Map<bigint, number[]>();
  for (let at = 0; at + 16 <= entries.length; at += 16) {
    const tag = entries.readBigUInt64LE(at);
    values.set(tag, [...(values.get(tag) ?? []), numberAt(entries, at + 8)]);
  }
  const [address = 0] = values.get(Tag.stringTable) ?? [];
  const [bytes = 0] = values.get(Tag.stringTableBytes) ?? [];
  const holder = segments.find(
    (one) => one.type === Segment.load && address >= one.address && address < one.address + one.bytes,
  );
  if (holder === undefined) return [];
  const strings = read(holder.offset + address - holder.address, bytes);
  return (values.get(Tag.needed) ?? []).map((offset) => textAt(strings, offset));
}

function programHeaders(read: ReadAt): ProgramHeader[] {
  const header = read(0, HEADER_BYTES);
  if (header.length < HEADER_BYTES || !header.subarray(0, MAGIC.length).equals(MAGIC)) return [];
  const count = Math.min(header.readUInt16LE(56), MAX_PROGRAM_HEADERS);
  const table = read(numberAt(header, 32), count * PROGRAM_HEADER_BYTES);
  const headers: ProgramHeader[] = [];
  for (let at = 0; at + PROGRAM_HEADER_BYTES <= table.length; at += PROGRAM_HEADER_BYTES) {
    headers.push({
      type: table.readUInt32LE(at),
      offset: numberAt(table, at + 8),
      address: numberAt(table, at + 16),
      bytes: numberAt(table, at + 32),
    });
  }
  return headers;
}

/** Addresses and sizes beyond 2^52 are those of a damaged file; there is nothing to read there. */
function numberAt(buffer: Buffer, offset: number): number {
  return Math.min(Number(buffer.readBigUInt64LE(offset)), 2 ** 52);
}

function textAt(strings: Buffer, offset: number): string {
  const [text = ''] = strings.subarray(offset).toString('latin1').split('\0');
  return text;
}
