/**
 * The database of a batch: one connection of one process, which has it for itself until it ends. So it is the lock, too, and goes with the process,
 * whatever ends that.
 */
import { DatabaseSync } from 'node:sqlite';
import { usageError } from '../../model/usage-error.ts';
import { SCHEMA, SCHEMA_VERSION } from './schema.ts';
import { BUSY, sqliteCode } from './sqlite-error.ts';
import { transaction } from './transaction.ts';

/** A write-ahead log could be damaged before, where two connections wrote (SQLite's release notes of 3.51.3). */
const OLDEST = [3, 51, 3] as const;

/** `wal` false: on file systems without shared memory. Returns null if another process has it. Throws a FailureError (usage) where it cannot be used. */
export function openDatabase(path: string, wal: boolean): DatabaseSync | null {
  refuseOldSqlite();
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    // Before the journal mode: so there is no -shm file, and nobody else can open it.
    database.exec('PRAGMA locking_mode = EXCLUSIVE');
    database.exec(wal ? 'PRAGMA journal_mode = WAL' : 'PRAGMA journal_mode = DELETE');
    database.exec('PRAGMA synchronous = FULL');
    // Takes the lock.
    transaction(database, () => migrate(database, path));
  } catch (error) {
    database.close();
    if (sqliteCode(error) === BUSY) return null;
    throw error;
  }
  return database;
}

function migrate(database: DatabaseSync, path: string): void {
  const { user_version: version } = database.prepare('PRAGMA user_version').get() ?? {};
  if (version === SCHEMA_VERSION) return;
  if (version !== 0)
    throw usageError(
      `${path} is of another version of ncclrun (its tables have version ${String(version)}, this one's ${SCHEMA_VERSION})`,
      'go on with the ncclrun that began the batch',
    );
  database.exec(SCHEMA);
  database.exec(`PRAGMA user_version = ${SCHEMA_VERSION}`);
}

function refuseOldSqlite(): void {
  const found = process.versions['sqlite'] ?? '0.0.0';
  const parts = found.split('.').map(Number);
  for (const [index, wanted] of OLDEST.entries()) {
    const part = parts[index] ?? 0;
    if (part > wanted) return;
    if (part < wanted)
      throw usageError(
        `batch needs SQLite ${OLDEST.join('.')} or newer, and ${process.execPath} has ${found}`,
        'install ncclrun with its optional packages: they bring a Node of their own',
      );
  }
}
