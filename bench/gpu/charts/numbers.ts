/** Numbers as people read them. */

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

export function binarySizeText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit + 1 < UNITS.length) {
    value /= 1024;
    unit++;
  }
  return `${Number(value.toPrecision(4))} ${UNITS[unit] ?? ''}`;
}

/** Up to 1000 with so many digits that a hundredth part shows. */
export function timeText(microseconds: number): string {
  return microseconds >= 1000 ? microseconds.toFixed(0) : microseconds.toFixed(microseconds >= 100 ? 0 : 1);
}
