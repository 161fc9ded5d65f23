/** Little-endian reading and writing of message payloads. Reading never goes past the end: it throws a ProtocolError that names the field. */
import { encodeSystemText, isEscaped } from '../system-text.ts';
import { ProtocolError } from './protocol-error.ts';

export class ByteReader {
  readonly #bytes: Buffer;
  readonly #what: string;
  #offset = 0;

  /** `what` names the message in errors. */
  constructor(bytes: Uint8Array, what: string) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#what = what;
  }

  get left(): number {
    return this.#bytes.length - this.#offset;
  }

  u32(field = 'a field'): number {
    return this.#bytes.readUInt32LE(this.#take(4, field));
  }

  i32(field = 'a field'): number {
    return this.#bytes.readInt32LE(this.#take(4, field));
  }

  u64(field = 'a field'): bigint {
    return this.#bytes.readBigUInt64LE(this.#take(8, field));
  }

  /** A u64 that must be exact as a number. */
  size(field = 'a field'): number {
    const value = this.u64(field);
    if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw this.malformed(`${field} is ${value}`);
    return Number(value);
  }

  /** A view into the message, no copy. */
  bytes(length: number, field = 'a field'): Uint8Array {
    const start = this.#take(length, field);
    return this.#bytes.subarray(start, start + length);
  }

  /** u32 length and bytes; a view, no copy. */
  block(field = 'a field'): Uint8Array {
    return this.bytes(this.u32(field), field);
  }

  /** u32 length and UTF-8. */
  string(field = 'a field'): string {
    const length = this.u32(field);
    const start = this.#take(length, field);
    return this.#bytes.toString('utf8', start, start + length);
  }

  /** The error for a field whose value cannot be. */
  malformed(reason: string): ProtocolError {
    return new ProtocolError(`${this.#what}: ${reason}`);
  }

  /** Refuses bytes after the last field. */
  end(): void {
    if (this.left !== 0) throw this.malformed(`${this.left} ${this.left === 1 ? 'byte' : 'bytes'} too many`);
  }

  #take(length: number, field: string): number {
    if (length > this.left) {
      throw this.malformed(`${field} needs ${length} bytes, ${this.left} are left`);
    }
    const start = this.#offset;
    this.#offset += length;
    return start;
  }
}

export class ByteWriter {
  #bytes: Buffer;
  #length = 0;

  constructor(capacity = 256) {
    this.#bytes = Buffer.allocUnsafe(capacity);
  }

  u32(value: number): this {
    this.#length = this.#room(4).writeUInt32LE(value, this.#length);
    return this;
  }

  i32(value: number): this {
    this.#length = this.#room(4).writeInt32LE(value, this.#length);
    return this;
  }

  u64(value: number | bigint): this {
    this.#length = this.#room(8).writeBigUInt64LE(BigInt(value), this.#length);
    return this;
  }

  bytes(value: Uint8Array): this {
    this.#room(value.length).set(value, this.#length);
    this.#length += value.length;
    return this;
  }

  /** u32 length and bytes. */
  block(value: Uint8Array): this {
    return this.u32(value.length).bytes(value);
  }

  /** u32 length and UTF-8. */
  string(value: string): this {
    const length = Buffer.byteLength(value);
    this.u32(length);
    this.#room(length).write(value, this.#length, length, 'utf8');
    this.#length += length;
    return this;
  }

  /** u32 length and the bytes that a string of the system stands for (system-text.ts). */
  systemText(value: string): this {
    return isEscaped(value) ? this.block(encodeSystemText(value)) : this.string(value);
  }

  /** What was written; the writer must not be used afterwards. */
  finish(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  #room(length: number): Buffer {
    const needed = this.#length + length;
    if (needed > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(Math.max(needed, this.#bytes.length * 2));
      this.#bytes.copy(larger, 0, 0, this.#length);
      this.#bytes = larger;
    }
    return this.#bytes;
  }
}
