/** Bounds-checked access to the bytes of a HostPlan; offsets are from its start. */
import { HEADER, PLAN_HEADER_BYTES, PLAN_MAGIC, PLAN_VERSION, SECTION } from './layout.ts';
import { readU64 } from './u64.ts';
import { PlanError } from './validate.ts';

/** Checks magic, version and size. The header's fields may be read without further checks. */
export function openPlan(bytes: Uint8Array): PlanReader {
  if (bytes.length < PLAN_HEADER_BYTES)
    throw new PlanError(`header: needs ${PLAN_HEADER_BYTES} bytes, the plan has ${bytes.length}`);
  const reader = new PlanReader(bytes);
  const [magic, version, headerBytes] = [
    reader.u32(HEADER.magic),
    reader.u16(HEADER.version),
    reader.u16(HEADER.headerBytes),
  ];
  if (magic !== PLAN_MAGIC) throw new PlanError(`magic: ${magic.toString(16)}, these bytes are no plan`);
  if (version !== PLAN_VERSION) throw new PlanError(`version: ${version}, this ncclrun reads version ${PLAN_VERSION}`);
  if (headerBytes < PLAN_HEADER_BYTES)
    throw new PlanError(`headerBytes: ${headerBytes}, expected at least ${PLAN_HEADER_BYTES}`);
  const total = reader.u64(HEADER.totalBytes, 'totalBytes');
  if (total !== bytes.length) throw new PlanError(`totalBytes: ${total}, the plan has ${bytes.length} bytes`);
  return reader;
}

export interface SectionReader {
  readonly count: number;
  /** Offset of record `index`, which must be below `count`. */
  at(index: number): number;
}

export class PlanReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  u8(at: number): number {
    return this.#view.getUint8(at);
  }

  u16(at: number): number {
    return this.#view.getUint16(at, true);
  }

  u32(at: number): number {
    return this.#view.getUint32(at, true);
  }

  f32(at: number): number {
    return this.#view.getFloat32(at, true);
  }

  u64(at: number, name: string): number {
    const value = readU64(this.#view, at);
    if (!Number.isSafeInteger(value)) throw new PlanError(`${name}: above 2^53`);
    return value;
  }

  /** All 64 bits set. */
  isOpenEnded(at: number): boolean {
    return this.u32(at) === 0xffff_ffff && this.u32(at + 4) === 0xffff_ffff;
  }

  bytes(at: number, length: number): Uint8Array {
    return this.#bytes.subarray(at, at + length);
  }

  /** The section whose descriptor lies at `at`; its records have at least `recordBytes`. */
  section(at: number, recordBytes: number, name: string): SectionReader {
    const offset = this.u64(at + SECTION.offset, `${name}.offset`);
    const count = this.u32(at + SECTION.count);
    const stride = this.u32(at + SECTION.stride);
    if (stride < recordBytes) throw new PlanError(`${name}.stride: ${stride}, expected at least ${recordBytes}`);
    if (offset < PLAN_HEADER_BYTES || offset + count * stride > this.#bytes.length) {
      throw new PlanError(
        `${name}: ${count} records of ${stride} bytes at ${offset} lie beyond ${this.#bytes.length} bytes`,
      );
    }
    return { count, at: (index) => offset + index * stride };
  }
}

/** The name that stands for a number on the wire. */
export function named<Name>(names: readonly Name[], number: number, what: string): Name {
  const name = names[number];
  if (name === undefined) throw new PlanError(`${what}: ${number} is unknown`);
  return name;
}
