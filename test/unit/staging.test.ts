import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, test } from 'vitest';
import { withoutSections } from '../../launcher/remote/staging/executable.ts';
import { bundleFiles } from '../../launcher/remote/staging/files.ts';
import { stagingFailure } from '../../launcher/remote/staging/failure.ts';
import { StagingRefusal } from '../../launcher/remote/staging/protocol.ts';
import { remoteCommand } from '../../launcher/remote/staging/remote-script.ts';
import { archivePieces, tarPieces } from '../../launcher/remote/staging/tar.ts';
import { repository } from '../rig/cluster.ts';

const directory = mkdtempSync(join(tmpdir(), 'ncclrun-staging-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

it('the staged files include every bundle', () => {
  const bundle = join(repository, 'dist/bundle');
  const built = readdirSync(bundle).filter((name) => name.endsWith('.cjs'));
  const staged = bundleFiles().map(({ path }) => path);
  expect(staged).toEqual(expect.arrayContaining(built.map((name) => `dist/bundle/${name}`)));
});

describe('the command for the remote shell', () => {
  const identity = { version: '1.2.3', key: '1.2.3-abc-node24' };
  const command = remoteCommand({ root: '/opt/ncclrun', identity, orderBytes: 4711, anew: false });

  it('the command contains nothing that csh or fish read differently', () => {
    expect(command).not.toMatch(/[\n!]|\\\\/);
  });

  it('the command has valid shell syntax', () => {
    expect(execFileSync('sh', ['-n', '-c', command], { encoding: 'utf8' })).toBe('');
  });

  it('the command keeps a path with blanks and quotes in one word', () => {
    const root = "/opt/it's here";
    const line = remoteCommand({ root, identity, orderBytes: 1, anew: true });
    const seen = execFileSync('sh', ['-c', line.replace(/^exec sh -c/, 'printf "%s\\0"')], { encoding: 'utf8' });
    expect(seen.split('\0').slice(1, 7)).toEqual(['ncclrun', root, '1.2.3', identity.key, '1', 'anew']);
  });
});

it('tar extracts the archive with the packed contents and modes', () => {
  const files = [
    { path: 'top/one', mode: 0o644, content: Buffer.from('one\n') },
    { path: 'top/deep/er/program', mode: 0o755, content: Buffer.alloc(1024, 7) },
    { path: 'top/empty', mode: 0o644, content: Buffer.alloc(0) },
  ];
  writeFileSync(join(directory, 'a.tar'), Buffer.concat(tarPieces(files)));
  const errors = execFileSync('tar', ['-xvf', 'a.tar'], { cwd: directory, encoding: 'utf8' });
  expect(errors.trim().split('\n')).toEqual(files.map(({ path }) => path));
  for (const { path, mode, content } of files) {
    expect(readFileSync(join(directory, path))).toEqual(content);
    expect(statSync(join(directory, path)).mode & 0o777).toBe(mode);
  }
  expect(readdirSync(join(directory, 'top')).toSorted()).toEqual(['deep', 'empty', 'one']);
  expect(() => tarPieces([{ path: 'x'.repeat(101), mode: 0o644, content: Buffer.alloc(0) }])).toThrow(/too long/);
});

it('partsOf divides the archive into parts of bounded size', () => {
  const pieces = [3, 0, 10, 1, 4, 2].map((length, place) => new Uint8Array(length).fill(place));
  const parts = [...archivePieces(pieces, 4)];
  expect(parts.map((part) => part.length)).toEqual([3, 4, 4, 3, 4, 2]);
  expect(Buffer.concat(parts)).toEqual(Buffer.concat(pieces));
  expect(parts[1]?.buffer).toBe(pieces[2]?.buffer); // the large one was not copied
  expect([...archivePieces(pieces, 100)].map((part) => part.length)).toEqual([20]);
  expect([...archivePieces([new Uint8Array(5)], 3)].map((part) => part.length)).toEqual([3, 2]);
  expect([...archivePieces([], 3)]).toEqual([]);
});

describe('an executable without its section table', () => {
  it('the executable is smaller and runs', () => {
    const slim = withoutSections(readFileSync(process.execPath));
    expect(slim.length).toBeLessThan(statSync(process.execPath).size);
    const file = join(directory, 'node');
    writeFileSync(file, slim, { mode: 0o755 });
    expect(execFileSync(file, ['-p', '6 * 7'], { encoding: 'utf8' })).toBe('42\n');
  });

  it.each([
    ['a script', '#!/bin/sh\n'],
    ['a header alone', '\u007fELF\u0002\u0001'],
    ['an empty file', ''],
  ])('withoutSections leaves %s unchanged', (_, text) => {
    const bytes = Buffer.from(text.padEnd(text.startsWith('\u007f') ? 64 : 0, '\u00ff'), 'latin1');
    expect(withoutSections(Buffer.from(bytes))).toEqual(bytes); // it works in place
  });
});

test.each([
  [
    StagingRefusal.unpack,
    'tar: a: Cannot write: No space left on device\ntar: Exiting with failure status',
    /No space left/,
  ],
  [StagingRefusal.directory, "mkdir: cannot create directory '/home/ann': Permission denied\n", /Permission denied/],
  [StagingRefusal.machine, 'Linux aarch64\n', /another machine \(Linux aarch64/],
  [StagingRefusal.start, "node: /lib/libc.so.6: version `GLIBC_2.28' not found\n", /GLIBC_2\.28/],
  [StagingRefusal.hash, '', /damaged/],
])('the failure of refusal %i contains the output of the tools: %j', (refusal, stderr, message) => {
  const failure = stagingFailure('h1', refusal, stderr);
  expect(failure).toMatchObject({ type: 'agent', host: 'h1' });
  expect(failure.message).toMatch(message);
  expect(failure.message).toContain('h1');
  expect(failure.remedy).not.toBeNull();
});
