/** The tuning rows of a HostPlan, read back. */
import {
  ALGORITHMS,
  AS_MESSAGES,
  COLLECTIVES,
  HEADER,
  PRECONDITIONS,
  PROTOCOLS,
  STRIDE,
  TUNING_RECORD,
  VARIANT_RECORD,
} from './layout.ts';
import { named } from './plan-reader.ts';
import type { PlanReader, SectionReader } from './plan-reader.ts';
import type { TuningRow, Variant } from './types.ts';
import { PlanError } from './validate.ts';

export function decodeTuning(reader: PlanReader): TuningRow[] {
  const rows = reader.section(HEADER.tuningTable, STRIDE.tuning, 'tuningTable');
  const variants = reader.section(HEADER.variantTable, STRIDE.variant, 'variantTable');
  let used = 0;
  return Array.from({ length: rows.count }, (_, index) => {
    const at = rows.at(index);
    const what = `tuningTable[${index}]`;
    const first = reader.u32(at + TUNING_RECORD.firstVariant);
    const count = reader.u32(at + TUNING_RECORD.variantCount);
    used += count; // rows that share variants could make a small file fill the memory
    if (Math.max(first + count, used) > variants.count) {
      throw new PlanError(`${what}: variants beyond the ${variants.count} there are`);
    }
    return {
      collective: named(COLLECTIVES, reader.u8(at + TUNING_RECORD.collective), `${what}.collective`),
      upToBytes: reader.isOpenEnded(at + TUNING_RECORD.upToBytes)
        ? null
        : reader.u64(at + TUNING_RECORD.upToBytes, `${what}.upToBytes`),
      variants: Array.from({ length: count }, (_variant, offset) => decodeVariant(reader, variants, first + offset)),
    };
  });
}

function decodeVariant(reader: PlanReader, variants: SectionReader, index: number): Variant {
  const at = variants.at(index);
  const what = `variantTable[${index}]`;
  const bits = reader.u32(at + VARIANT_RECORD.requires);
  if (bits >>> PRECONDITIONS.length !== 0)
    throw new PlanError(`${what}.requires: bits ${bits.toString(2)} are unknown`);
  const flags = reader.u32(at + VARIANT_RECORD.flags);
  if ((flags & ~AS_MESSAGES) !== 0) throw new PlanError(`${what}.flags: bits ${flags.toString(2)} are unknown`);
  return {
    algorithm: named(ALGORITHMS, reader.u8(at + VARIANT_RECORD.algorithm), `${what}.algorithm`),
    protocol: named(PROTOCOLS, reader.u8(at + VARIANT_RECORD.protocol), `${what}.protocol`),
    channels: reader.u16(at + VARIANT_RECORD.channels),
    chunkBytes: reader.u64(at + VARIANT_RECORD.chunkBytes, `${what}.chunkBytes`),
    threads: reader.u32(at + VARIANT_RECORD.threads),
    requires: PRECONDITIONS.filter((_, bit) => (bits & (1 << bit)) !== 0),
    asMessages: (flags & AS_MESSAGES) !== 0,
    predictedMicroseconds: reader.f32(at + VARIANT_RECORD.predictedMicroseconds),
    predictedMicrosecondsPerMebibyte: reader.f32(at + VARIANT_RECORD.predictedMicrosecondsPerMebibyte),
  };
}
