/** Whole numbers up to 2^53 as little-endian u64, without BigInt. */
export function writeU64(view: DataView, at: number, value: number): void {
  view.setUint32(at, value % 2 ** 32, true);
  view.setUint32(at + 4, Math.floor(value / 2 ** 32), true);
}

/** Above 2^53 the result is not exact: check with Number.isSafeInteger. */
export function readU64(view: DataView, at: number): number {
  return view.getUint32(at + 4, true) * 2 ** 32 + view.getUint32(at, true);
}
