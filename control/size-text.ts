/** Bytes for people: `1.2 MB`, `350 kB`, `12 bytes`. */
export function sizeText(bytes: number): string {
  if (bytes >= 1e9) return `${(bytes / 1e9).toFixed(1)} GB`;
  if (bytes >= 1e6) return `${(bytes / 1e6).toFixed(1)} MB`;
  return bytes >= 1000 ? `${Math.round(bytes / 1000)} kB` : `${bytes} ${bytes === 1 ? 'byte' : 'bytes'}`;
}
