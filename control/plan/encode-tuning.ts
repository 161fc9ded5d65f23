/** Tuning rows and their variants, as bytes. */
import {
  ALGORITHMS,
  AS_MESSAGES,
  COLLECTIVES,
  PRECONDITIONS,
  PROTOCOLS,
  STRIDE,
  TUNING_RECORD,
  VARIANT_RECORD,
} from './layout.ts';
import type { TuningRow, Variant } from './types.ts';
import { writeU64 } from './u64.ts';

export function writeTuning(view: DataView, rowsAt: number, variantsAt: number, rows: readonly TuningRow[]): void {
  let variantIndex = 0;
  // The engine finds the rows of a collective by its number.
  const sorted = rows.toSorted((one, other) => numberOf(one) - numberOf(other));
  sorted.forEach((row, index) => {
    const at = rowsAt + index * STRIDE.tuning;
    view.setUint8(at + TUNING_RECORD.collective, COLLECTIVES.indexOf(row.collective));
    view.setUint32(at + TUNING_RECORD.firstVariant, variantIndex, true);
    view.setUint32(at + TUNING_RECORD.variantCount, row.variants.length, true);
    if (row.upToBytes === null) view.setBigUint64(at + TUNING_RECORD.upToBytes, 0xffff_ffff_ffff_ffffn, true);
    else writeU64(view, at + TUNING_RECORD.upToBytes, row.upToBytes);
    for (const entry of row.variants) writeVariant(view, variantsAt + variantIndex++ * STRIDE.variant, entry);
  });
}

function numberOf(row: TuningRow): number {
  return COLLECTIVES.indexOf(row.collective);
}

function writeVariant(view: DataView, at: number, variant: Variant): void {
  view.setUint8(at + VARIANT_RECORD.algorithm, ALGORITHMS.indexOf(variant.algorithm));
  view.setUint8(at + VARIANT_RECORD.protocol, PROTOCOLS.indexOf(variant.protocol));
  view.setUint16(at + VARIANT_RECORD.channels, variant.channels, true);
  view.setUint32(at + VARIANT_RECORD.threads, variant.threads, true);
  writeU64(view, at + VARIANT_RECORD.chunkBytes, variant.chunkBytes);
  const bits = variant.requires.reduce((mask, name) => mask | (1 << PRECONDITIONS.indexOf(name)), 0);
  view.setUint32(at + VARIANT_RECORD.requires, bits, true);
  view.setFloat32(at + VARIANT_RECORD.predictedMicroseconds, variant.predictedMicroseconds, true);
  const perMebibyte = at + VARIANT_RECORD.predictedMicrosecondsPerMebibyte;
  view.setUint32(at + VARIANT_RECORD.flags, variant.asMessages ? AS_MESSAGES : 0, true);
  view.setFloat32(perMebibyte, variant.predictedMicrosecondsPerMebibyte, true);
}
