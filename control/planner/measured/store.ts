/** Tables in the cache directory. */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { randomBytes } from '../../random-bytes.ts';
import { hashOf, inOrder, tablePath } from './key.ts';
import type { TableKey } from './key.ts';
import { parseTable, printTable, TableError } from './table.ts';
import type { Table } from './table.ts';
import { messageOf } from '../../message-of.ts';

export interface FoundTable {
  readonly file: string;
  readonly table: Table;
}

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

/**
 * Into a directory that is made if it is not there. What an earlier table of the same key has of collectives that were not measured this time
 * stays. Throws the system's error.
 */
export function storeTable(directory: string, name: string, table: Table): void {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
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

/** Readers see the old one or the new one, and nobody else may see either. Throws the system's error. */
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
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw new TableError(`${file}: cannot be read: ${messageOf(error)}`);
  }
}
