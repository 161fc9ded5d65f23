/** The known_hosts files themselves: read once per job, added to where the user's configuration says so. */
import { createHmac, randomBytes } from 'node:crypto';
import { appendFile, mkdir, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { keyType, parseKnownHosts } from './entry.ts';
import type { KnownHost } from './entry.ts';

const SALT_BYTES = 20;

export class KnownHostsFiles {
  readonly #read = new Map<string, Promise<readonly KnownHost[]>>();

  /** All entries of these files, in their order. A file that is missing or unreadable holds none, as for ssh. */
  async entries(files: readonly string[]): Promise<readonly KnownHost[]> {
    return (await Promise.all(files.map((file) => this.#entriesOf(file)))).flat();
  }

  #entriesOf(file: string): Promise<readonly KnownHost[]> {
    const known = this.#read.get(file);
    if (known !== undefined) return known;
    const reading = readFile(file, 'utf8').then(
      (text) => parseKnownHosts(text, file).entries,
      () => [],
    );
    this.#read.set(file, reading);
    return reading;
  }
}

/** Adds a line for `name` (as lookupName gives it). One write, so that lines of jobs that add at once do not mix. @throws the system's error */
export async function addKnownHost(file: string, name: string, key: Buffer, hashed: boolean): Promise<void> {
  const names = hashed ? hashedName(name, randomBytes(SALT_BYTES)) : name;
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  await appendFile(file, `${names} ${keyType(key) ?? 'unknown'} ${key.toString('base64')}\n`, { mode: 0o600 });
}

export function hashedName(name: string, salt: Buffer): string {
  return `|1|${salt.toString('base64')}|${createHmac('sha1', salt).update(name).digest('base64')}`;
}
