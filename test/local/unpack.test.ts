/** The unpacker that goes ahead of an archive, spoken to as a launcher does. */
import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { zstdCompressSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { encodeFrame, FrameDecoder, makeFrame } from '../../control/messages/codec.ts';
import { type Frame, FrameKind } from '../../control/messages/frame.ts';
import { ArchiveCompression, StagingMessage, UnpackerStatus } from '../../launcher/remote/staging/protocol.ts';
import { type TarEntry, tarPieces } from '../../launcher/remote/staging/tar.ts';

const UNPACKER = join(import.meta.dirname, '../../build/ncclrun-unpack');
const PIECE_BYTES = 100_000;
const files: readonly TarEntry[] = [
  { path: 'top/one', mode: 0o644, content: Buffer.from('one\n') },
  { path: 'top/deep/er/program', mode: 0o755, content: randomBytes(3_000_001) },
  { path: 'top/empty', mode: 0o644, content: Buffer.alloc(0) },
  { path: 'top/even', mode: 0o600, content: Buffer.alloc(1024, 7) },
];
const tar = Buffer.concat(tarPieces(files));
/** Two frames of zstd's, as the launcher's archives have several. */
const pack = (bytes: Buffer) =>
  Buffer.concat([bytes.subarray(0, 1_000_000), bytes.subarray(1_000_000)].map((part) => zstdCompressSync(part)));
const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

interface Given {
  readonly archive: Buffer;
  /** Of what was promised. */
  readonly hash?: string;
  /** The stream ends before this piece. */
  readonly cutBefore?: number;
  readonly environment?: NodeJS.ProcessEnv;
}

describe('the unpacker', () => {
  let base: string;
  let directory: string;
  let number = 0;
  beforeAll(async () => {
    base = await mkdtemp(join(tmpdir(), 'ncclrun-unpack-'));
  });
  afterAll(() => rm(base, { recursive: true, force: true }));
  beforeEach(async () => {
    number += 1;
    directory = join(base, `${number}`);
    await mkdir(directory);
  });

  async function unpack({ archive, hash = sha256(archive), cutBefore, environment }: Given) {
    const child = spawn(UNPACKER, [directory], { env: { ...process.env, ...environment } });
    const pieces = Array.from({ length: Math.ceil(archive.length / PIECE_BYTES) }, (_, index) =>
      archive.subarray(index * PIECE_BYTES, (index + 1) * PIECE_BYTES),
    );
    const output: Frame[] = [];
    let given = 0;
    let stderr = '';
    const send = (payload: Buffer) => child.stdin.write(encodeFrame(makeFrame(FrameKind.staging, { payload })));
    const decoder = new FrameDecoder((frame) => {
      output.push(frame);
      if (frame.flags === StagingMessage.wanted) return send(Buffer.from(`${pieces.length} 0 0 ${hash}\n`));
      const piece = given === cutBefore ? undefined : pieces[given];
      given += 1;
      return piece === undefined ? child.stdin.end() : send(piece);
    });
    child.stdout.on('data', (bytes: Buffer) => decoder.push(bytes));
    child.stderr.on('data', (bytes: Buffer) => (stderr += bytes.toString()));
    child.stdin.on('error', () => {}); // it has ended before the last piece
    await once(child, 'close');
    return { status: child.exitCode, stderr, output, pieces: pieces.length };
  }

  it('the unpacker creates the packed files with their modes', async () => {
    const { status, stderr, output, pieces } = await unpack({ archive: pack(tar) });
    expect({ status, stderr }).toEqual({ status: UnpackerStatus.unpacked, stderr: '' });
    expect(output[0]).toMatchObject({ flags: StagingMessage.wanted, subject: ArchiveCompression.zstd });
    expect(output.filter(({ flags }) => flags === StagingMessage.next)).toHaveLength(pieces);
    for (const { path, mode, content } of files) {
      expect(Buffer.compare(await readFile(join(directory, path)), content)).toBe(0);
      expect((await stat(join(directory, path))).mode & 0o777).toBe(mode);
    }
    expect((await readdir(join(directory, 'top'))).toSorted()).toEqual(['deep', 'empty', 'even', 'one']);
  });

  it.each([
    ['with an unexpected hash', { archive: pack(tar), hash: '0'.repeat(64) }, UnpackerStatus.otherHash, /^$/],
    ['that ends early', { archive: pack(tar), cutBefore: 3 }, UnpackerStatus.failed, /the launcher left/],
    ['whose content is truncated', { archive: pack(tar.subarray(0, -1024)) }, UnpackerStatus.failed, /no end/],
    ['that is not zstd', { archive: Buffer.from('no zstd at all') }, UnpackerStatus.failed, /the archive: \w+/],
    [
      'that leaves its directory',
      { archive: pack(Buffer.concat(tarPieces([{ path: '../x', mode: 0o644, content: Buffer.from('x') }]))) },
      UnpackerStatus.failed,
      /\.\.\/x: not a file of ours/,
    ],
    [
      'with the same file twice',
      { archive: pack(Buffer.concat(tarPieces([...files.slice(0, 1), ...files.slice(0, 1)]))) },
      UnpackerStatus.failed,
      /top\/one: File exists/,
    ],
  ])('the unpacker rejects an archive %s', async (_, given, status, text) => {
    const ended = await unpack(given);
    expect(ended.status).toBe(status);
    expect(ended.stderr).toMatch(text);
  });

  it.each(['libzstd.so.1', 'libcrypto.so.3'])('the unpacker stays silent on a host without %s', async (library) => {
    const libraries = join(directory, 'libraries');
    await mkdir(libraries);
    await writeFile(join(libraries, library), '');
    if (library.startsWith('libcrypto')) await writeFile(join(libraries, 'libcrypto.so.1.1'), '');
    const { status, output, stderr } = await unpack({
      archive: pack(tar),
      environment: { LD_LIBRARY_PATH: libraries },
    });
    expect({ status, output, stderr }).toEqual({ status: UnpackerStatus.cannotServe, output: [], stderr: '' });
  });
});
