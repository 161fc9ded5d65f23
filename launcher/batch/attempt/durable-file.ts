/** Files that are there whole after a loss of power, or not at all. */
import {
  closeSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { errorCode } from './error-code.ts';

/** Replaces whatever has that name. Throws as node:fs does. */
export function writeDurably(path: string, content: string): void {
  const temporary = `${path}.new`;
  writeSynced(temporary, content);
  renameSync(temporary, path);
  syncDirectory(dirname(path));
}

/** True if this made the file; false if it was there already, as another has made it. Throws as node:fs does. */
export function createDurably(path: string, content: string): boolean {
  const temporary = `${path}.${process.pid}`;
  writeSynced(temporary, content);
  try {
    linkSync(temporary, path);
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(temporary, { force: true });
  }
  syncDirectory(dirname(path));
  return true;
}

/** Null: there is no such file. Throws as node:fs does. */
export function readIfThere(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return null;
    throw error;
  }
}

function writeSynced(path: string, content: string): void {
  const file = openSync(path, 'w', 0o600);
  try {
    writeAll(file, Buffer.from(content));
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

function writeAll(file: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at);
}

/** With those above it. Only for its user. It may be there. */
export function makeDirectory(path: string): void {
  if (mkdirSync(path, { recursive: true, mode: 0o700 }) !== undefined) syncDirectory(dirname(path));
}

function syncDirectory(path: string): void {
  const directory = openSync(path, 'r');
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}
