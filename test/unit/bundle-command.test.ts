/** ncclrun bundle with an archive that is kept already: where it is written, and what is said about it. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { bundle } from '../../launcher/cli/commands/bundle.ts';
import { canCompress } from '../../launcher/remote/staging/archive.ts';
import { installedIdentity } from '../../launcher/remote/staging/identity.ts';
import { captured, refusal } from '../rig/captured.ts';

const root = mkdtempSync(join(tmpdir(), 'ncclrun-bundle-'));
afterAll(() => rmSync(root, { recursive: true }));
beforeEach(() => void vi.stubEnv('XDG_CACHE_HOME', root));
afterEach(() => void vi.unstubAllEnvs());

/** Null in a checkout that was not built. */
const identity = installedIdentity();
const bytes = Buffer.alloc(2.5 * 1024 * 1024, 'bundle');
const bundles = join(root, 'ncclrun', 'bundles');
mkdirSync(bundles, { recursive: true, mode: 0o700 });
for (const suffix of ['.tar.gz', '.tar.zst']) {
  const hash = createHash('sha256').update(bytes).digest('hex');
  writeFileSync(join(bundles, `${identity?.key}.${hash}${suffix}`), bytes, { mode: 0o600 });
}

const unquoted = (text: string) => text.replaceAll("'", '');
const said = (file: string, how: string) =>
  `ncclrun: wrote ${file} (2.5 MiB, ncclrun ${identity?.version} and Node for ${process.arch})\n` +
  `  next: on each host that lacks it, beside a copy of this file: mkdir -p ~/.cache/ncclrun && tar ${how} ${file} -C ~/.cache/ncclrun\n`;

describe.skipIf(identity === null)('bundles', () => {
  const formats: [string, string][] = [
    ['a.tar.gz', '-xzf'],
    ['a.zst.gz', '-xzf'],
    ['a.tar.zst', '--zstd -xf'],
    ['a.zst', '--zstd -xf'],
  ];
  it.each(formats.filter(([name]) => canCompress(name.endsWith('zst') ? 'zstd' : 'gzip')))(
    'ncclrun bundle writes %s',
    async (name, how) => {
      const directory = mkdtempSync(join(root, 'to-'));
      const file = join(directory, name);
      const { status, stdout, stderr } = await captured(() => bundle(['-o', file]));
      expect([status, stdout, unquoted(stderr)]).toEqual([0, '', said(file, how)]);
      expect(readFileSync(file).equals(bytes)).toBe(true);
      expect(readdirSync(directory)).toEqual([name]);
    },
  );

  it('ncclrun bundle writes into a pipe without replacing it', async () => {
    const pipe = join(root, 'pipe');
    execFileSync('mkfifo', [pipe]);
    const [read, { status, stderr }] = await Promise.all([readFile(pipe), captured(() => bundle(['-o', pipe]))]);
    expect([status, unquoted(stderr)]).toEqual([0, said(pipe, '-xzf')]);
    expect(read.equals(bytes)).toBe(true);
    expect(lstatSync(pipe).isFIFO()).toBe(true);
  });

  it('ncclrun bundle leaves nothing where it cannot write', async () => {
    const directory = mkdtempSync(join(root, 'folder-'));
    expect(await refusal(() => bundle(['-o', directory]))).toMatch(
      /^.*folder-\w+ cannot be written: .*EISDIR.*; name a file with -o where you may write, and where there is room$/u,
    );
    const file = join(root, 'none', 'a.tar.gz');
    expect(await refusal(() => bundle(['-o', file]))).toContain(`${file} cannot be written: `);
  });

  it('ncclrun bundle --help prints its usage', async () => {
    const { status, stdout } = await captured(() => bundle(['--help']));
    expect([status, stdout.split('\n')[0]]).toEqual([0, expect.stringContaining('ncclrun bundle')]);
  });
});
