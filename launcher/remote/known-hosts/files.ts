/** The known_hosts files: read once per job, and extended if the user's configuration asks for it. */
import { createHmac, randomBytes } from 'node:crypto';
import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { keyType, parseKnownHosts } from './entry.ts';
import type { KnownHost } from './entry.ts';

const SALT_BYTES = 20;

export class KnownHostsFiles {
  readonly #read = new Map<string, readonly KnownHost[]>();

  /** All entries of these files, in their order. A file that is missing or unreadable holds none, as for ssh. */
  entries(files: readonly string[]): readonly KnownHost[] {
    return files.flatMap((file) => this.#entriesOf(file));
  }

  #entriesOf(file: string): readonly KnownHost[] {
    const known = this.#read.get(file);
    if (known !== undefined) return known;
    const entries = readEntries(file);
    this.#read.set(file, entries);
    return entries;
  }
}

function readEntries(file: string): readonly KnownHost[] {
  try {
    return parseKnownHosts(readFileSync(file, 'utf8'), file).entries;
  } catch {
    return [];
  }
}

/** Adds a line for `name` (as lookupName gives it). One write, so that lines of jobs that add at once do not mix. @throws the system's error */
export function addKnownHost(file: string, name: string, key: Buffer, hashed: boolean): void {
  const names = hashed ? hashedName(name, randomBytes(SALT_BYTES)) : name;
  // As ssh does with ~/.ssh: one directory, in one that is there.
  const directory = dirname(file);
  if (!existsSync(directory)) mkdirSync(directory, { mode: 0o700 });
  appendFileSync(file, `${names} ${keyType(key) ?? 'unknown'} ${key.toString('base64')}\n`, { mode: 0o600 });
}

export function hashedName(name: string, salt: Buffer): string {
  return `|1|${salt.toString('base64')}|${createHmac('sha1', salt).update(name).digest('base64')}`;
}
