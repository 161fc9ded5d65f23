/** SQLite's result codes (sqlite.org/rescode.html). */
import { errorCode } from '../attempt/error-code.ts';

export const BUSY = 5;
const READONLY = 8;
const IOERR = 10;
const CORRUPT = 11;
const FULL = 13;
const CANTOPEN = 14;
const NOTADB = 26;

/** Null: it is no error of SQLite's. */
export function sqliteCode(error: unknown): number | null {
  if (errorCode(error) !== 'ERR_SQLITE_ERROR' || !(error instanceof Error) || !('errcode' in error)) return null;
  return typeof error.errcode === 'number' ? error.errcode % 256 : null; // the rest of an extended code
}

export function isDiskError(code: number): boolean {
  return [READONLY, IOERR, CORRUPT, FULL, CANTOPEN, NOTADB].includes(code);
}
