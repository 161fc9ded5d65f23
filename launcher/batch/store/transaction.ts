import type { DatabaseSync } from 'node:sqlite';
import { diskFailure } from './disk-failure.ts';
import { isDiskError, sqliteCode } from './sqlite-error.ts';

/**
 * All of `body` or nothing is in the database, and on the disk, when this returns. `body` must not await: another turn would write into it. Throws a
 * FailureError (system) where the disk does not take it. Within another transaction it is a part of that.
 */
export function transaction<T>(database: DatabaseSync, body: () => T): T {
  if (database.isTransaction) return body();
  try {
    database.exec('BEGIN IMMEDIATE');
    const result = body();
    database.exec('COMMIT');
    return result;
  } catch (error) {
    const code = sqliteCode(error);
    if (code === null || !isDiskError(code) || !(error instanceof Error)) throw error;
    throw diskFailure(`the batch's database ${database.location() ?? ''}`, error);
  } finally {
    if (database.isTransaction) database.exec('ROLLBACK');
  }
}
