/** The archive of ncclrun in the cache directory: hosts run what is in it, so one that another user may have written does not count. */
import * as zlib from 'node:zlib';
import { createHash } from 'node:crypto';
import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { canCompress, findKept, keep } from '../../launcher/remote/staging/archive.ts';

const root = mkdtempSync(join(tmpdir(), 'ncclrun-archive-'));
afterAll(() => rmSync(root, { recursive: true }));
const identity = { version: '1.2.3', key: '1.2.3-abc-node20' };
const bytes = Buffer.from('an archive');
const hash = createHash('sha256').update(bytes).digest('hex');
const name = `${identity.key}.${hash}.tar.gz`;

function kept(directory: string): string {
  const file = join(directory, name);
  writeFileSync(file, bytes);
  return file;
}

it('findKept accepts an archive of the user', async () => {
  const file = kept(mkdtempSync(join(root, 'own-')));
  const found = await findKept(join(file, '..'), 'gzip', identity);
  expect(found).toEqual({ compression: 'gzip', bytes, sha256: hash, kept: { file } });
});

it.each<[string, number, number]>([
  ['that others may write to', 0o666, 0o755],
  ['in a directory that others may write to', 0o644, 0o777],
])('findKept rejects an archive %s', async (_, mode, directoryMode) => {
  const directory = mkdtempSync(join(root, 'open-'));
  chmodSync(kept(directory), mode);
  chmodSync(directory, directoryMode);
  expect(await findKept(directory, 'gzip', identity)).toBeNull();
});

it('keep() creates directory and archive for the user alone', async () => {
  const directory = join(root, 'new/bundles');
  await keep(join(directory, name), bytes);
  expect(statSync(directory).mode & 0o777).toBe(0o700);
  expect(statSync(join(directory, name)).mode & 0o777).toBe(0o600);
});

it('keep() rejects a directory that others may write to', async () => {
  const directory = mkdtempSync(join(root, 'open-'));
  chmodSync(directory, 0o777);
  await expect(keep(join(directory, name), bytes)).rejects.toThrow(
    `another user could change it in ${directory}: every user may write to it (mode 0777)`,
  );
  expect(readdirSync(directory)).toEqual([]);
});

it('every Node compresses with gzip, and with zstd if its zlib does', () => {
  expect([canCompress('gzip'), canCompress('zstd')]).toEqual([true, 'zstdCompress' in zlib]);
});
