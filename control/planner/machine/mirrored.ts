/** The bits of `value` below `power`, a power of two, in the opposite order: neighbouring numbers come far apart. */
export function mirrored(value: number, power: number): number {
  let result = 0;
  for (let bit = 1, mirror = power >> 1; bit < power; bit <<= 1, mirror >>= 1) {
    if ((value & bit) !== 0) result |= mirror;
  }
  return result;
}
