/** Numbers in files of the kernel. */
import { readText } from '../topology/system-files.ts';

/** The first number of a file; null: it has none. */
export function numberIn(root: string, path: string): number | null {
  return numberOf(readText(root, path));
}

/** Null for what is none, or less than nothing (the kernel's word for "unknown"). */
export function numberOf(text: string | undefined): number | null {
  const [digits] = /^\s*[0-9]+(\.[0-9]+)?/u.exec(text ?? '') ?? [];
  return digits === undefined ? null : Number(digits);
}

/** Of a file with a name and a number in each line (`MemTotal:  1024 kB`, `pgpgin 12`). */
export function namedNumbers(text: string): ReadonlyMap<string, number> {
  const lines = text.matchAll(/^([\w().]+):?\s+([0-9]+)/gmu);
  return new Map(Array.from(lines, ([, name = '', value = '']) => [name, Number(value)]));
}
