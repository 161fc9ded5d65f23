/** Small files and directories of /proc, /sys and /dev; what is not there is empty. `root` is `/`, or a test's directory. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export function readText(root: string, path: string): string {
  try {
    return readFileSync(join(root, path), 'utf8').trim();
  } catch {
    return '';
  }
}

export function listDirectory(root: string, path: string): string[] {
  try {
    return readdirSync(join(root, path));
  } catch {
    return [];
  }
}

/** The kernel's lists: `0-3,8` → 0, 1, 2, 3, 8. What is none gives nothing. */
export function parseCpuList(text: string): number[] {
  return text.split(',').flatMap((part) => {
    const [, first, last] = /^\s*([0-9]{1,5})(?:-([0-9]{1,5}))?\s*$/u.exec(part) ?? [];
    if (first === undefined) return [];
    const from = Number(first);
    const length = Math.max(0, Number(last ?? first) - from + 1);
    return Array.from({ length }, (_, index) => from + index);
  });
}
