/** Reads a file that is obeyed although nobody has named it: only if no other user can have written it. */
import { closeSync, constants, fstatSync, lstatSync, openSync, readFileSync, type Stats, statSync } from 'node:fs';
import { untrustedPath } from '../../control/trusted-path.ts';
import { usageError } from './usage-error.ts';

export type TrustedRead =
  | { readonly kind: 'missing' }
  | { readonly kind: 'content'; readonly content: string }
  | { readonly kind: 'refused'; readonly reason: string; readonly remedy: string };

/** Every option takes some 50 bytes. */
const MAX_BYTES = 1024 * 1024;

const { O_RDONLY, O_NONBLOCK, O_NOCTTY } = constants;

/** Throws a FailureError (usage) for a file of the user's own that the user may not read. */
export function readTrusted(path: string, uid: number): TrustedRead {
  if (!isThere(path)) return { kind: 'missing' };
  const untrusted = untrustedPath(path, uid);
  if (untrusted !== null)
    return refused(untrusted, 'to use it, make it and the directories above it yours, and writable by you alone');
  // A device is not opened: that may do something. Nobody but the user and root can put one here after this look.
  const state = statSync(path, { throwIfNoEntry: false });
  if (state === undefined) return { kind: 'missing' }; // a link that leads nowhere
  const unfit = whyUnfit(state);
  if (unfit !== null) return refused(unfit, WRITE_JSON);
  const file = opened(path);
  try {
    const stillUnfit = whyUnfit(fstatSync(file));
    if (stillUnfit !== null) return refused(stillUnfit, WRITE_JSON);
    return { kind: 'content', content: readFileSync(file, 'utf8') };
  } finally {
    closeSync(file);
  }
}

const WRITE_JSON = 'settings are written as a JSON object';

function refused(reason: string, remedy: string): TrustedRead {
  return { kind: 'refused', reason, remedy };
}

function whyUnfit(state: Stats): string | null {
  if (!state.isFile()) return 'it is not a regular file';
  return state.size > MAX_BYTES ? `it has ${state.size} bytes, more than any settings (${MAX_BYTES})` : null;
}

/** An entry that cannot be looked at counts. */
function isThere(path: string): boolean {
  try {
    lstatSync(path);
    return true;
  } catch (error) {
    const code = codeOf(error);
    return code !== 'ENOENT' && code !== 'ENOTDIR';
  }
}

/** Does not wait for whoever writes to a pipe, and takes no terminal. */
function opened(path: string): number {
  try {
    return openSync(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  } catch (error) {
    throw usageError(`cannot read the settings in ${path}: ${String(codeOf(error))}`, 'make it readable or remove it');
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : error;
}
