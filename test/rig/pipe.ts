/** Descriptors that a test looks at: pipes whose reads do not wait, and whether a descriptor is open. */
import { spawnSync } from 'node:child_process';
import { constants, fstatSync, openSync } from 'node:fs';
import { join } from 'node:path';

/** A new pipe in the directory; both descriptors read and write. */
export function pipe(directory: string): { readonly mine: number; readonly its: number } {
  const path = join(directory, `pipe-${crypto.randomUUID()}`);
  const { status } = spawnSync('mkfifo', [path]);
  if (status !== 0) throw new Error(`mkfifo ${path} ended with status ${status}`);
  const open = (): number => openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  return { mine: open(), its: open() };
}

export function isOpen(descriptor: number): boolean {
  try {
    fstatSync(descriptor);
    return true;
  } catch {
    return false;
  }
}
