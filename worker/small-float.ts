/** Numbers in the floating-point formats that no typed array has. */

export interface FloatFormat {
  /** With the leading one, which is not stored. */
  readonly significandBits: number;
  readonly exponentBits: number;
}

/** The bits of `value`, rounded to the nearest number of the format, ties to even. What is too large becomes infinite, in e4m3 (which has no infinity) NaN. */
export function smallFloatBits(value: number, { significandBits, exponentBits }: FloatFormat): number {
  const fractionBits = significandBits - 1;
  const bias = 2 ** (exponentBits - 1) - 1;
  const sign = value < 0 || Object.is(value, -0) ? 2 ** (fractionBits + exponentBits) : 0;
  const allOnes = 2 ** (fractionBits + exponentBits) - 1;
  const isE4m3 = exponentBits === 4;
  if (Number.isNaN(value)) return sign + allOnes;
  const infinity = isE4m3 ? allOnes : allOnes - (2 ** fractionBits - 1);
  const magnitude = Math.abs(value);
  if (magnitude === Infinity) return sign + infinity;
  // Just below a power of two log2 may yield its exponent: the number is rounded up to it anyway.
  const normal = Math.max(Math.floor(Math.log2(magnitude)), 1 - bias);
  const steps = roundToEven(magnitude / 2 ** (normal - fractionBits));
  const hidden = 2 ** fractionBits;
  // Rounding up to the next power of two carries into the exponent, as it should.
  const bits = steps < hidden ? steps : (normal + bias) * hidden + (steps - hidden);
  return sign + Math.min(bits, infinity);
}

function roundToEven(value: number): number {
  const below = Math.floor(value);
  const rest = value - below;
  return rest > 0.5 || (rest === 0.5 && below % 2 === 1) ? below + 1 : below;
}
