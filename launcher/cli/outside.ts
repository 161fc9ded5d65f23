/** Whether a path, or a pattern of paths, leads out of a directory: by its words, or by a symbolic link that is there. */
import { lstatSync, readdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../control/message-of.ts';
import type { PatternPart } from '../model/output-pattern.ts';

/** Stands for a field in the text of a pattern; no path has it. */
const FIELD = '\0';

/**
 * Null, or a clause with the reason. `directory` is absolute and has no symbolic links. What a field may stand for is anything but a slash, so every entry
 * of a directory counts that the pattern fits.
 */
export function whyOutside(directory: string, parts: readonly PatternPart[]): string | null {
  const path = parts.map((part) => ('text' in part ? part.text.replaceAll(FIELD, '') : FIELD)).join('');
  if (path.startsWith('/')) return 'this is an absolute path';
  const names = path.split('/').filter((name) => name !== '' && name !== '.');
  if (names.includes('..')) return 'this leads out of it';
  // Such as .git, whose files decide what runs.
  if (names.some((name) => name.startsWith('.'))) return 'this is a hidden file';
  return whyLeaving(directory, directory, names);
}

/** `names`: what is left of the path, below `at`. */
function whyLeaving(directory: string, at: string, [name, ...rest]: readonly string[]): string | null {
  if (name === undefined) return null;
  for (const entry of entriesLike(at, name)) {
    const path = join(at, entry);
    const found = target(path);
    if (found === null) continue;
    if ('problem' in found) return `${path} leads nowhere (${found.problem})`;
    if (!isBelow(found.path, directory)) return `${path} leads to ${found.path}`;
    const why = whyLeaving(directory, found.path, rest);
    if (why !== null) return why;
  }
  return null;
}

function entriesLike(directory: string, name: string): string[] {
  if (!name.includes(FIELD)) return [name];
  const pieces = name.split(FIELD);
  try {
    return readdirSync(directory).filter((entry) => fits(entry, pieces));
  } catch {
    return []; // it is not there, or no directory
  }
}

/** Whether the pieces stand in `text` one after the other, the first at its beginning and the last at its end. */
function fits(text: string, pieces: readonly string[]): boolean {
  const [begin = '', ...others] = pieces;
  const end = others.pop() ?? '';
  if (!text.startsWith(begin) || !text.endsWith(end) || text.length < begin.length + end.length) return false;
  let from = begin.length;
  for (const piece of others) {
    const found = text.indexOf(piece, from);
    if (found === -1) return false;
    from = found + piece.length;
  }
  return from <= text.length - end.length;
}

/** Where a path leads; null: there is no such entry. */
function target(path: string): { readonly path: string } | { readonly problem: string } | null {
  try {
    lstatSync(path);
  } catch {
    return null;
  }
  try {
    return { path: realpathSync(path) };
  } catch (error) {
    return { problem: error instanceof Error && 'code' in error ? String(error.code) : messageOf(error) };
  }
}

function isBelow(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory.endsWith('/') ? directory : `${directory}/`);
}
