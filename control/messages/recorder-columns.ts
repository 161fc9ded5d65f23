/**
 * Recorded operations by column: a number of entries, then each field of all entries, one field after the other. Numbers are LEB128, signed ones
 * zigzag; what grows is stored as the difference to the entry before, times of an operation as the difference to its call. The bytes are
 * compressed by zlib and written in base64, about 12 bytes for an operation.
 */
import { ProtocolError } from './protocol-error.ts';
import { NO_PEER, RECORDER_ENTRIES, type RecorderEntry } from './recorder.ts';

type Field = keyof RecorderEntry;
/** How a column stores its field. */
const COLUMNS: readonly (readonly [Field, 'delta' | 'after-call' | 'peer' | 'plain'])[] = [
  ['sequence', 'delta'],
  ['enqueuedNs', 'delta'],
  ['startedNs', 'after-call'],
  ['endedNs', 'after-call'],
  ['count', 'delta'],
  ['operation', 'delta'],
  ['communicator', 'plain'],
  ['peer', 'peer'],
  ['lastPeer', 'peer'],
  ['hash', 'plain'],
  ['flags', 'plain'],
  ['collective', 'plain'],
  ['call', 'plain'],
  ['algorithm', 'plain'],
  ['protocol', 'plain'],
  ['channels', 'plain'],
  ['stream', 'plain'],
];
/** Bytes of one number: 2^63 has 63 bits, zigzag 64. */
const MAX_NUMBER_BYTES = 10;
const MAX_BYTES = MAX_NUMBER_BYTES * (1 + COLUMNS.length * RECORDER_ENTRIES);
const PEERS = NO_PEER + 1;

export function encodeColumns(entries: readonly RecorderEntry[]): string {
  const bytes: number[] = [];
  put(bytes, entries.length);
  for (const [field, kind] of COLUMNS) {
    let before = 0;
    for (const entry of entries) {
      const value = entry[field];
      if (kind === 'delta') {
        put(bytes, zigzag(value - before));
        before = value;
      } else if (kind === 'after-call') put(bytes, value === 0 ? 0 : 1 + zigzag(value - entry.enqueuedNs));
      else put(bytes, kind === 'peer' ? (value + 1) % PEERS : value);
    }
  }
  return process.getBuiltinModule('node:zlib').deflateSync(Uint8Array.from(bytes)).toString('base64');
}

/** @throws ProtocolError for anything that encodeColumns does not write */
export function decodeColumns(text: string): RecorderEntry[] {
  const reader = new Reader(inflate(text));
  const count = reader.number();
  if (count > RECORDER_ENTRIES) throw new ProtocolError(`recorder: ${count} operations of one process`);
  const entries = Array.from({ length: count }, () => ({ ...NOTHING }));
  for (const [field, kind] of COLUMNS) {
    let before = 0;
    for (const entry of entries) {
      const value = reader.number();
      if (kind === 'delta') before += unzigzag(value);
      entry[field] =
        kind === 'delta'
          ? before
          : kind === 'plain'
            ? value
            : kind === 'peer'
              ? (value + NO_PEER) % PEERS
              : value === 0
                ? 0
                : entry.enqueuedNs + unzigzag(value - 1);
      if (entry[field] < 0) throw new ProtocolError(`recorder: ${field} is ${entry[field]}`);
    }
  }
  reader.end();
  return entries;
}

/** A field whose column is still to be read. */
const UNREAD = Number.NaN;
const NOTHING: { -readonly [Name in Field]: number } = {
  sequence: UNREAD,
  enqueuedNs: UNREAD,
  startedNs: UNREAD,
  endedNs: UNREAD,
  count: UNREAD,
  operation: UNREAD,
  communicator: UNREAD,
  peer: UNREAD,
  lastPeer: UNREAD,
  hash: UNREAD,
  flags: UNREAD,
  collective: UNREAD,
  call: UNREAD,
  algorithm: UNREAD,
  protocol: UNREAD,
  channels: UNREAD,
  stream: UNREAD,
};

function inflate(text: string): Uint8Array {
  try {
    return process
      .getBuiltinModule('node:zlib')
      .inflateSync(Buffer.from(text, 'base64'), { maxOutputLength: MAX_BYTES });
  } catch {
    throw new ProtocolError('recorder: columns that are not compressed by zlib, or too many');
  }
}

/** Numbers may be above 2^32, so no operator on bits. */
function zigzag(value: number): number {
  return value < 0 ? -2 * value - 1 : 2 * value;
}

function unzigzag(value: number): number {
  return value % 2 === 1 ? -(value + 1) / 2 : value / 2;
}

function put(bytes: number[], value: number): void {
  let rest = value;
  while (rest >= 128) {
    bytes.push(128 + (rest % 128));
    rest = Math.floor(rest / 128);
  }
  bytes.push(rest);
}

class Reader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  number(): number {
    let value = 0;
    for (let unit = 1, read = 0; read < MAX_NUMBER_BYTES; read++, unit *= 128) {
      const byte = this.#bytes[this.#at++];
      if (byte === undefined) throw new ProtocolError('recorder: columns that end too early');
      value += (byte % 128) * unit;
      if (byte < 128) return value;
    }
    throw new ProtocolError('recorder: a number of more than 64 bits');
  }

  end(): void {
    if (this.#at !== this.#bytes.length) throw new ProtocolError('recorder: bytes after the last column');
  }
}
