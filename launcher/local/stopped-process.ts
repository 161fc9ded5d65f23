/** Processes that a signal (kill -STOP, ^Z) or a debugger has stopped: the kernel takes calls for them, and nobody answers. */
import { readFileSync } from 'node:fs';

/** A busy process answers within this time. */
export const ANSWER_MS = 30_000;

/** False for one that has ended. */
export function isStopped(pid: number): boolean {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return /^[Tt]$/.test(fields.slice(fields.lastIndexOf(')') + 2).charAt(0)); // the name may contain anything
  } catch {
    return false;
  }
}
