/** Executables without sections, and archives byte by byte. */
import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { encodeFrame, makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import { withoutSections } from '../../launcher/remote/staging/executable.ts';
import { StagingMessage } from '../../launcher/remote/staging/protocol.ts';
import { installedCommand } from '../../launcher/remote/staging/remote-script.ts';
import { archivePieces, tarPieces } from '../../launcher/remote/staging/tar.ts';

/** An ELF file with program headers at 64, one for each `[offset, bytes]`, and `length` bytes in all. */
function elf(
  length: number,
  segments: readonly (readonly [number, number])[],
  change: (file: Buffer) => void = () => undefined,
): Buffer {
  const file = Buffer.alloc(length, 0xaa);
  file.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 0], 0);
  file.writeBigUInt64LE(64n, 32);
  file.writeBigUInt64LE(4000n, 40);
  file.writeUInt16LE(56, 54);
  file.writeUInt16LE(segments.length, 56);
  for (const [index, [offset, bytes]] of segments.entries()) {
    file.writeBigUInt64LE(BigInt(offset), 64 + index * 56 + 8);
    file.writeBigUInt64LE(BigInt(bytes), 64 + index * 56 + 32);
  }
  change(file);
  return file;
}

it('a host where nothing is installed says that its shell runs, and ends', () => {
  const { stdout, status } = spawnSync('sh', ['-c', installedCommand('/nonexistent')]);
  const alive = makeFrame(FrameKind.staging, { flags: StagingMessage.alive });
  expect([stdout, status]).toEqual([Buffer.from(encodeFrame(alive)), 127]);
});

describe('an executable', () => {
  it.each<[string, [number, number][], number]>([
    [
      'what its segments have',
      [
        [0, 200],
        [200, 300],
      ],
      500,
    ],
    [
      'segments in any order',
      [
        [200, 300],
        [0, 200],
      ],
      500,
    ],
    ['its program headers', [[0, 10]], 64 + 56],
    ['nothing beyond the headers of a file without segments', [], 64],
  ])('it keeps %s', (_what, segments, length) => {
    const file = elf(5000, segments);
    const before = Buffer.from(file);
    const kept = withoutSections(file);
    expect(kept.length).toBe(length);
    expect([kept.readBigUInt64LE(40), kept.subarray(58, 64).toString('hex')]).toEqual([0n, '000000000000']);
    const same = (from: number, to: number) =>
      kept.subarray(from, to).equals(before.subarray(from, Math.min(to, length)));
    expect([same(0, 40), same(48, 58), same(64, length)]).toEqual([true, true, true]);
  });

  it.each<[string, Buffer]>([
    ['a short file', elf(64, []).subarray(0, 63)],
    ['another magic number', elf(100, [], (file) => (file[0] = 0x7e))],
    ['32 bits', elf(100, [], (file) => (file[4] = 1))],
    ['another byte order', elf(100, [], (file) => (file[5] = 2))],
    ['program headers beyond its end', elf(119, [], (file) => void file.writeUInt16LE(1, 56))],
  ])('a file with %s stays as it is', (_what, file) => {
    const before = Buffer.from(file);
    expect(withoutSections(file)).toBe(file);
    expect(file).toEqual(before);
  });

  it('64 bytes may be a whole file, and its headers may end with it', () => {
    expect(withoutSections(elf(64, [])).readBigUInt64LE(40)).toBe(0n);
    expect(withoutSections(elf(120, [[0, 120]])).readBigUInt64LE(40)).toBe(0n);
  });
});

const text = (block: Uint8Array, offset: number, length: number) =>
  Buffer.from(block.subarray(offset, offset + length)).toString('latin1');

const lengths = (bytes: number, path = 'p') =>
  tarPieces([{ path, mode: 0, content: new Uint8Array(bytes) }]).map(({ length }) => length);

describe('an archive', () => {
  it('a header has its fields in octal, and a checksum over itself', () => {
    const content = Buffer.from('hello');
    const [header = new Uint8Array(), body, padding, end, ...more] = tarPieces([{ path: 'a/b', mode: 0o755, content }]);
    expect([header.length, body, padding?.length, end?.length, more]).toEqual([512, content, 507, 1024, []]);
    expect([
      text(header, 0, 5),
      text(header, 100, 8),
      text(header, 108, 8),
      text(header, 116, 8),
      text(header, 124, 12),
      text(header, 136, 12),
    ]).toEqual(['a/b\0\0', '0000755\0', '0000000\0', '0000000\0', '00000000005\0', '03560116604\0']);
    expect([text(header, 156, 1), text(header, 257, 8), text(header, 265, 247)]).toEqual([
      '0',
      'ustar\u000000',
      '\0'.repeat(247),
    ]);
    const unsummed = Uint8Array.from(header).fill(0x20, 148, 156);
    const sum = unsummed.reduce((total, byte) => total + byte, 0);
    expect(text(header, 148, 8)).toBe(`${sum.toString(8).padStart(6, '0')}\0 `);
  });

  it('contents of whole blocks have no padding, and paths end at 100 bytes', () => {
    expect([lengths(0), lengths(511), lengths(512), lengths(513)]).toEqual([
      [512, 0, 0, 1024],
      [512, 511, 1, 1024],
      [512, 512, 0, 1024],
      [512, 513, 511, 1024],
    ]);
    expect(lengths(0, 'é'.repeat(50))[0]).toBe(512);
    expect(() => lengths(0, 'é'.repeat(50) + 'x')).toThrow('is too long a path for an archive');
  });

  it.each<[number[], number[]]>([
    [[], []],
    [[4], [4]],
    [[10], [10]],
    [[11], [10, 1]],
    [[4, 6], [10]],
    [
      [4, 7],
      [4, 7],
    ],
    [
      [4, 25],
      [4, 10, 10, 5],
    ],
    [
      [25, 5],
      [10, 10, 10],
    ],
    [
      [25, 6],
      [10, 10, 5, 6],
    ],
    [[0, 3], [3]],
    [[20], [10, 10]],
  ])('pieces of %j bytes become parts of %j', (pieces, parts) => {
    let next = 0;
    const made = pieces.map((length) => Uint8Array.from({ length }, () => next++));
    const cut = [...archivePieces(made, 10)];
    expect(cut.map(({ length }) => length)).toEqual(parts);
    expect(Buffer.concat(cut)).toEqual(Buffer.concat(made));
  });
});
