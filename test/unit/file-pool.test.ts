/** The files of many ranks, of which only so many are open at a time. */
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { FilePool } from '../../launcher/report/file-pool.ts';

const FILES = 300;
let directory = '';
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'ncclrun-file-pool-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

function path(rank: number): string {
  return join(directory, 'of', 'job', `${rank}`);
}

/** Files of the directory that this process has open. */
function openFiles(): number {
  return readdirSync('/proc/self/fd').filter((descriptor) => {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`).startsWith(directory);
    } catch {
      return false; // the descriptor of this very look
    }
  }).length;
}

it('a pool keeps 256 files open and appends to all', async () => {
  const pool = new FilePool();
  for (let rank = 0; rank < FILES; rank++) await pool.create(path(rank));
  expect(openFiles()).toBe(256);
  for (const text of ['one\n', 'two\n']) {
    for (let rank = 0; rank < FILES; rank++) await pool.append(path(rank), Buffer.from(text));
  }
  expect(openFiles()).toBe(256);
  for (let rank = 0; rank < FILES; rank++) expect(readFileSync(path(rank), 'utf8')).toBe('one\ntwo\n');
  await pool.close();
  expect(openFiles()).toBe(0);
});

it('writes at the same time to one file are all kept, and creation empties the file', async () => {
  const pool = new FilePool();
  await pool.create(path(0));
  await pool.append(path(0), Buffer.from('old'));
  await pool.close();
  await pool.create(path(0));
  await Promise.all(Array.from({ length: 8 }, () => pool.append(path(0), Buffer.from('x'))));
  expect(readFileSync(path(0), 'utf8')).toBe('xxxxxxxx');
  await pool.close();
});

it('a file that cannot be made is refused each time, and others are not', async () => {
  const pool = new FilePool();
  writeFileSync(join(directory, 'plain'), '');
  await expect(pool.create(join(directory, 'plain', 'file'))).rejects.toThrow('EEXIST');
  await expect(pool.append(directory, Buffer.from('x'))).rejects.toThrow('EISDIR');
  await expect(pool.append(directory, Buffer.from('x'))).rejects.toThrow('EISDIR');
  await pool.create(path(1));
  expect(openFiles()).toBe(1);
  await pool.close();
});
