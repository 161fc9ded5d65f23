/** Bytes for people: `1.2 MB`, `350 kB`, `12 bytes`. */
export function sizeText(bytes: number): string {
  if (bytes >= 1e9) return `${(bytes / 1e9).toFixed(1)} GB`;
  if (bytes >= 1e6) return `${(bytes / 1e6).toFixed(1)} MB`;
  return bytes >= 1000 ? `${Math.round(bytes / 1000)} kB` : `${bytes} ${bytes === 1 ? 'byte' : 'bytes'}`;
}

const BINARY_UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];

/** In powers of 1024, to so many digits: `1.5 GiB`. */
export function binarySize(bytes: number, digits = 3): string {
  const power = bytes < 1024 ? 0 : Math.min(BINARY_UNITS.length - 1, Math.floor(Math.log2(bytes) / 10));
  return `${Number((bytes / 1024 ** power).toPrecision(digits))} ${BINARY_UNITS[power] ?? ''}`;
}
