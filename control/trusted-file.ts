/** Reads a file that is obeyed although no command line or variable has named it: only if nobody but the user and root can have written it. */
import { closeSync, constants, fstatSync, lstatSync, openSync, readFileSync, type Stats, statSync } from 'node:fs';
import { untrustedPath } from './trusted-path.ts';

export type TrustedRead =
  | { readonly kind: 'missing' }
  | { readonly kind: 'content'; readonly content: string }
  /** Another user can change it. The sentence says "it" of the file. */
  | { readonly kind: 'untrusted'; readonly reason: string }
  /** It is the user's own, but no regular file, or too long. */
  | { readonly kind: 'unfit'; readonly reason: string }
  /** It is the user's own, but the user may not read it; `code` is the system's. */
  | { readonly kind: 'unreadable'; readonly code: string };

const { O_RDONLY, O_NONBLOCK, O_NOCTTY } = constants;

export function readTrusted(path: string, uid: number, maxBytes: number): TrustedRead {
  if (!isThere(path)) return { kind: 'missing' };
  const untrusted = untrustedPath(path, uid);
  if (untrusted !== null) return { kind: 'untrusted', reason: untrusted };
  try {
    // A device is not opened: that may do something. Nobody but the user and root can put one here after this look.
    return whyUnfit(statSync(path), maxBytes) ?? contentOf(path, maxBytes);
  } catch (error) {
    if (isMissing(error)) return { kind: 'missing' }; // a link that leads nowhere
    return { kind: 'unreadable', code: codeOf(error) };
  }
}

/** Opening waits for nobody who writes to a pipe, and takes no terminal. */
function contentOf(path: string, maxBytes: number): TrustedRead {
  const file = openSync(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  try {
    return whyUnfit(fstatSync(file), maxBytes) ?? { kind: 'content', content: readFileSync(file, 'utf8') };
  } finally {
    closeSync(file);
  }
}

function whyUnfit(state: Stats, maxBytes: number): TrustedRead | null {
  if (!state.isFile()) return { kind: 'unfit', reason: 'it is not a regular file' };
  if (state.size <= maxBytes) return null;
  return { kind: 'unfit', reason: `it has ${state.size} bytes; at most ${maxBytes} are read` };
}

/** An entry that cannot be looked at counts, but not one in a directory that this user may not search: it cannot be meant for them. */
function isThere(path: string): boolean {
  try {
    lstatSync(path);
    return true;
  } catch (error) {
    return !isMissing(error) && codeOf(error) !== 'EACCES';
  }
}

function isMissing(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR'].includes(codeOf(error));
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error);
}
