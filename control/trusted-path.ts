/**
 * Whether a file or directory is a user's own: nobody but this user and root can change what its path leads to, from the root directory down.
 * What is asked before a file is obeyed that no command line or variable has named.
 */
import { lstatSync, readlinkSync, type Stats } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { groupText, isPrivateGroup, userText } from './accounts.ts';

const MAX_LINKS = 40;
const GROUP_WRITES = 0o020;
const OTHERS_WRITE = 0o002;
const STICKY = 0o1000;

/**
 * Null, or why another user than `uid` and root can change what `path` leads to: a sentence in which "it" is what the path names, and "you" is `uid`.
 * A path that leads nowhere is judged by the directory in which it would lie. POSIX ACLs are not looked at, beyond what they show in a mode.
 *
 * The walk begins at the root directory and looks into a directory only after having found that nobody else can change its entries. So what was found
 * still holds when the caller opens the path.
 */
export function untrustedPath(path: string, uid: number): string | null {
  let directory: PathEntry = { path: '/', state: lstatSync('/') };
  let names = namesOf(resolve(path));
  let links = 0;
  const foreignRoot = whyForeign(directory, uid, 'the directory /');
  if (foreignRoot !== null) return foreignRoot;
  for (let name = names.shift(); name !== undefined; name = names.shift()) {
    if (name === '..') {
      const above = dirname(directory.path);
      directory = { path: above, state: lstatSync(above) };
      continue;
    }
    const isLast = names.length === 0;
    const entry = lookUp(join(directory.path, name));
    if (entry !== null && 'problem' in entry) return entry.problem;
    // In a sticky directory such as /tmp nobody can replace what is the user's, but everybody can make what is not there yet.
    const stickyWillDo = entry !== null && !(isLast && !entry.state.isDirectory());
    const why = whyWritable(directory, uid, `the directory ${directory.path}`, stickyWillDo);
    if (why !== null || entry === null) return why;
    const isLink = entry.state.isSymbolicLink();
    const foreign = whyForeign(entry, uid, subjectOf(entry, isLast));
    if (foreign !== null) return foreign;
    if (isLink) {
      links += 1;
      if (links > MAX_LINKS) return `it has more than ${MAX_LINKS} symbolic links in its path`;
      const target = readlinkSync(entry.path);
      if (target.startsWith('/')) directory = { path: '/', state: lstatSync('/') };
      names = [...namesOf(target), ...names];
    } else if (isLast) {
      return whyWritable(entry, uid, 'it', false);
    } else {
      directory = entry;
    }
  }
  return whyWritable(directory, uid, 'it', false);
}

interface PathEntry {
  readonly path: string;
  readonly state: Stats;
}

function namesOf(path: string): string[] {
  return path.split('/').filter((name) => name !== '' && name !== '.');
}

/** Null: there is no such entry. */
function lookUp(path: string): PathEntry | { readonly problem: string } | null {
  try {
    return { path, state: lstatSync(path) };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : null;
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    return { problem: `the directory ${dirname(path)} cannot be searched (${String(code ?? error)})` };
  }
}

function subjectOf({ path, state }: PathEntry, isLast: boolean): string {
  if (state.isSymbolicLink()) return `the symbolic link ${path}`;
  return isLast ? 'it' : `the directory ${path}`;
}

function whyForeign({ state }: PathEntry, uid: number, subject: string): string | null {
  if (state.uid === uid || state.uid === 0) return null;
  return `${subject} belongs to ${userText(state.uid)}, not to you`;
}

function whyWritable({ state }: PathEntry, uid: number, subject: string, stickyWillDo: boolean): string | null {
  const { mode, gid } = state;
  if (stickyWillDo && (mode & STICKY) !== 0) return null;
  const writer =
    (mode & OTHERS_WRITE) !== 0
      ? 'every user'
      : (mode & GROUP_WRITES) !== 0 && !isPrivateGroup(gid, uid)
        ? groupText(gid)
        : null;
  return writer === null ? null : `${writer} may write to ${subject} (mode ${modeText(mode)})`;
}

function modeText(mode: number): string {
  return (mode & 0o7777).toString(8).padStart(4, '0');
}
