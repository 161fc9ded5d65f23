/** Which spawned process a process descends from. */
import { readFileSync } from 'node:fs';

/** Deeper trees are taken for a damaged /proc. */
const MAX_DEPTH = 256;

/** Nearest of `ancestors` above `pid` (itself included) in the process tree, or null. */
export function findAncestor(pid: number, ancestors: ReadonlyMap<number, number>): number | null {
  let at: number | null = pid;
  for (let depth = 0; depth < MAX_DEPTH && at !== null && at > 1; depth++) {
    if (ancestors.has(at)) return at;
    at = parentOf(at);
  }
  return null;
}

/** The fourth field of /proc/<pid>/stat; the second, in parentheses, may contain anything. */
function parentOf(pid: number): number | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
    return Number.isInteger(parent) ? parent : null;
  } catch {
    return null; // it has ended
  }
}
