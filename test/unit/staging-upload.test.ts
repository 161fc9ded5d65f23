/** What the launcher gives a host that is copied to: sizes, terms and pieces of a kept archive, one for each request. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { makeFrame } from '../../control/messages/codec.ts';
import { FrameKind, type Frame } from '../../control/messages/frame.ts';
import { installationRoot } from '../../launcher/local/host.ts';
import { ArchiveUpload } from '../../launcher/remote/staging/archive-upload.ts';
import { canCompress, findKept, keep } from '../../launcher/remote/staging/archive.ts';
import { UNPACKER } from '../../launcher/remote/staging/files.ts';
import { ArchiveCompression, PIECE_BYTES, StagingMessage } from '../../launcher/remote/staging/protocol.ts';
import { until } from '../rig/until.ts';

const root = mkdtempSync(join(tmpdir(), 'ncclrun-upload-'));
afterAll(() => rmSync(root, { recursive: true }));

const identity = { version: '1', key: '1-abc-node' };
const hashOf = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
const kept = Buffer.alloc(2 * PIECE_BYTES + 5, 'archive ');
const other = Buffer.from('packed with zstd');

const bundles = join(root, 'ncclrun', 'bundles');
mkdirSync(bundles, { recursive: true, mode: 0o700 });
writeFileSync(join(bundles, `1-abc-node.${hashOf(kept)}.tar.gz`), kept, { mode: 0o600 });
writeFileSync(join(bundles, `1-abc-node.${hashOf(other)}.tar.zst`), other, { mode: 0o600 });

beforeEach(() => void vi.stubEnv('XDG_CACHE_HOME', root));
afterEach(() => void vi.unstubAllEnvs());

function uploading() {
  const sent: Frame[] = [];
  const news: unknown[] = [];
  const link = { open: () => undefined, send: (frame: Frame) => void sent.push(frame), flush: () => undefined };
  const order = makeFrame(FrameKind.order, { payload: Buffer.from('{}') });
  const upload = new ArchiveUpload({
    identity,
    order,
    link: { ...link, close: () => undefined },
    onBegin: (bytes) => void news.push(`${bytes} bytes`),
    onOffer: (pieces) => void news.push(`${pieces} pieces`),
    onFailure: (message, remedy) => void news.push([message, remedy]),
  });
  const ask = (flags: number, subject = 0) => upload.frame(makeFrame(FrameKind.staging, { flags, subject }));
  const answer = async (count: number) => {
    await until('the answer is there', () => sent.length === count);
    return Buffer.from(sent[count - 1]?.payload ?? '');
  };
  return { sent, news, order, ask, answer };
}

describe('an upload', () => {
  it('gives terms, then a piece for each request, and in the end the order', async () => {
    const { sent, news, order, ask, answer } = uploading();
    ask(StagingMessage.next);
    ask(StagingMessage.alive);
    expect(sent).toEqual([]);
    ask(StagingMessage.wanted, ArchiveCompression.gzip);
    expect((await answer(1)).toString()).toBe(`3 ${PIECE_BYTES} 5 ${hashOf(kept)}\n`);
    expect(news).toEqual([`${kept.length} bytes`, '3 pieces']);
    const pieces = await Promise.all(
      [2, 3, 4].map((count) => {
        ask(StagingMessage.next);
        return answer(count);
      }),
    );
    expect(pieces.map(({ length }) => length)).toEqual([PIECE_BYTES, PIECE_BYTES, 5]);
    expect(Buffer.concat(pieces).equals(kept)).toBe(true);
    ask(StagingMessage.staged);
    expect([sent.length, sent.at(-1)]).toEqual([5, order]);
    expect(new Set(sent.slice(0, 4).map(({ kind }) => kind))).toEqual(new Set([FrameKind.staging]));
  });

  it.runIf(canCompress('zstd'))('gives what the unpacker wants in its own format', async () => {
    const { news, ask, answer } = uploading();
    ask(StagingMessage.wanted, ArchiveCompression.zstd);
    expect((await answer(1)).toString()).toBe(`1 ${PIECE_BYTES} ${other.length} ${hashOf(other)}\n`);
    expect(news).toEqual([`${other.length} bytes`, '1 pieces']);
  });

  it.runIf(canCompress('zstd'))('gives the unpacker ahead of the archive', async () => {
    const { sent, news, ask, answer } = uploading();
    const unpacker = readFileSync(join(installationRoot, UNPACKER));
    ask(StagingMessage.unpacker);
    expect((await answer(1)).toString()).toBe(`${unpacker.length}\n`);
    expect(news).toEqual(['1 pieces']);
    ask(StagingMessage.next);
    expect((await answer(2)).equals(unpacker)).toBe(true);
    ask(StagingMessage.next);
    expect(sent).toHaveLength(2);
    ask(StagingMessage.wanted, ArchiveCompression.gzip);
    await answer(3);
    ask(StagingMessage.next);
    expect((await answer(4)).equals(kept.subarray(0, PIECE_BYTES))).toBe(true);
  });
});

describe('the archives that are kept', () => {
  it('are found by their key and their format', async () => {
    const directory = mkdtempSync(join(root, 'kept-'));
    const [right, wrong] = [Buffer.from('right'), Buffer.from('wrong')];
    const name = (key: string, bytes: Buffer, suffix = '.tar.gz') =>
      join(directory, `${key}.${hashOf(bytes)}${suffix}`);
    await keep(name('0-other', wrong), wrong);
    await keep(name(identity.key, wrong, '.tar.zst'), wrong);
    expect(await findKept(directory, 'gzip', identity)).toBeNull();
    await keep(name(identity.key, right), right);
    writeFileSync(name(identity.key, Buffer.from('damaged')), 'not that', { mode: 0o600 });
    expect(await findKept(directory, 'gzip', identity)).toMatchObject({ bytes: right, sha256: hashOf(right) });
    expect(await findKept(join(directory, 'none'), 'gzip', identity)).toBeNull();
  });

  it.each([
    [7 * 24 - 1, true],
    [7 * 24 + 1, false],
  ])('one that is %i hours old is kept: %s', async (hours, stays) => {
    const directory = mkdtempSync(join(root, 'old-'));
    const old = join(directory, 'old.tar.gz');
    writeFileSync(old, 'old');
    const seconds = Date.now() / 1000 - hours * 3600;
    utimesSync(old, seconds, seconds);
    await keep(join(directory, 'new.tar.gz'), Buffer.from('new'));
    expect(existsSync(old)).toBe(stays);
  });
});
