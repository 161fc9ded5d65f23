/** Tables in the cache directory. */
import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { randomBytes } from '../../random-bytes.ts';
import { hashOf, inOrder, isNameOfKind, tablePath } from './key.ts';
import type { TableKey } from './key.ts';
import { parseTable, printTable, TableError } from './table.ts';
import type { Table } from './table.ts';
import { ownUser } from '../../own-user.ts';
import { readTrusted } from '../../trusted-file.ts';
import { untrustedPath } from '../../trusted-path.ts';

export interface FoundTable {
  readonly file: string;
  readonly table: Table;
}

/** Far more than a table of every collective and variant has. */
const MAX_BYTES = 64 * 1024 * 1024;

/** null: nothing was measured for this key. Throws a TableError that begins with the file's name. */
export function findTable(directory: string, key: TableKey): FoundTable | null {
  const file = tablePath(directory, key);
  const json = contentOf(file);
  if (json === null) return null;
  try {
    const table = parseTable(json);
    if (hashOf(inOrder(table.key)) === hashOf(inOrder(key))) return { file, table };
    throw new TableError('key: it is of another machine');
  } catch (error) {
    if (error instanceof TableError) throw new TableError(`${file}: ${error.message}`);
    throw error;
  }
}

/** Readable tables of the same kind of hosts and network as `key`, whatever the number of hosts and ranks. */
export function findTablesOfKind(directory: string, key: TableKey): Table[] {
  let names: string[];
  try {
    names = readdirSync(directory);
  } catch {
    return [];
  }
  return names
    .filter((name) => isNameOfKind(name, key))
    .flatMap((name) => {
      try {
        const json = contentOf(join(directory, name));
        const table = json === null ? null : parseTable(json);
        return table !== null && isNameOfKind(basename(tablePath(directory, table.key)), key) ? [table] : [];
      } catch (error) {
        if (error instanceof TableError) return []; // it is no loss
        throw error;
      }
    });
}

/**
 * Into a directory that is made if it is not there. What an earlier table of the same key has of collectives that were not measured this time
 * stays. Throws the system's error, or why tables in this directory are not obeyed.
 */
export function storeTable(directory: string, name: string, table: Table): void {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const untrusted = untrustedPath(directory, ownUser());
  if (untrusted !== null) throw new Error(`another user could change it there: ${untrusted}`);
  const measured = new Set(table.collectives.map(({ collective }) => collective));
  const others = earlier(directory, table.key).filter(({ collective }) => !measured.has(collective));
  writeTable(join(directory, name), { ...table, collectives: [...table.collectives, ...others] });
}

function earlier(directory: string, key: TableKey): Table['collectives'] {
  try {
    return findTable(directory, key)?.table.collectives ?? [];
  } catch (error) {
    if (error instanceof TableError) return []; // it is no loss
    throw error;
  }
}

/** Replaces the table atomically; only the user may read it. Throws the system's error. */
export function writeTable(file: string, table: Table): void {
  const partial = `${file}.${randomBytes(6).toString('hex')}`;
  try {
    writeFileSync(partial, printTable(table), { mode: 0o600, flag: 'wx' });
    renameSync(partial, file);
  } catch (error) {
    rmSync(partial, { force: true });
    throw error;
  }
}

function contentOf(file: string): string | null {
  const read = readTrusted(file, ownUser(), MAX_BYTES);
  switch (read.kind) {
    case 'missing':
      return null;
    case 'content':
      return read.content;
    case 'untrusted':
    case 'unfit':
      throw new TableError(`${file}: ${read.reason}`);
    case 'unreadable':
      throw new TableError(`${file}: cannot be read: ${read.code}`);
    default:
      return read satisfies never;
  }
}
