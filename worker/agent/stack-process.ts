/** Which process of a rank has its stacks: the program, not the shell that started it. */
import { readFileSync } from 'node:fs';

const SHELLS: ReadonlySet<string> = new Set(['sh', 'bash', 'dash', 'zsh', 'ksh', 'fish', 'busybox', 'tini', 'env']);
const MAX_DEPTH = 8;

/** Follows shells that have one child. */
export function programOf(pid: number): number {
  let at = pid;
  for (let depth = 0; depth < MAX_DEPTH; depth++) {
    const [child, ...others] = childrenOf(at);
    if (child === undefined || others.length > 0 || !SHELLS.has(nameOf(at))) return at;
    at = child;
  }
  return at;
}

function nameOf(pid: number): string {
  return read(`/proc/${pid}/comm`).trim();
}

function childrenOf(pid: number): number[] {
  return read(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean).map(Number);
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}
