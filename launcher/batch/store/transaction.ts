import type { DatabaseSync } from 'node:sqlite';

/** All of `body` or nothing is in the database, and on the disk, when this returns. `body` must not await: another turn would write into it. */
export function transaction<T>(database: DatabaseSync, body: () => T): T {
  database.exec('BEGIN IMMEDIATE');
  try {
    const result = body();
    database.exec('COMMIT');
    return result;
  } finally {
    if (database.isTransaction) database.exec('ROLLBACK');
  }
}
