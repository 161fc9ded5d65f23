import { PassThrough } from 'node:stream';
import { describe, expect, test } from 'vitest';
import type { OutputChunk } from '../../launcher/model/event.ts';
import { makePaint } from '../../launcher/text/colour.ts';
import { Fold } from '../../launcher/report/fold.ts';
import { Lane } from '../../launcher/report/lane.ts';
import { tagOf, type TagOptions } from '../../launcher/report/tag.ts';
import { Writer } from '../../launcher/report/writer.ts';
import { seededRandom } from '../rig/random.ts';

function rig(ranks: number, options: Partial<TagOptions> = {}) {
  const seen = { text: '' };
  const stream = new PassThrough();
  stream.on('data', (data: Buffer) => (seen.text += data.toString()));
  const writer = new Writer(() => stream);
  const paint = makePaint(false, {});
  const tags: TagOptions = { tagOutput: 'auto', timestamps: false, ...options };
  const lane = new Lane(writer, (chunk) => tagOf(chunk, true, tags, paint));
  const fold = new Fold(
    lane,
    Array.from({ length: ranks }, (_, rank) => rank),
  );
  return { fold, seen, writer };
}

const chunk = (rank: number, text: string): OutputChunk => ({
  rank,
  host: rank < 2 ? 'a' : 'b',
  stream: 'stdout',
  time: 0,
  bytes: Buffer.from(text),
  partial: !text.endsWith('\n'),
});

describe('equal lines of several ranks', () => {
  test('equal lines become one line as soon as all ranks have written it', async () => {
    const { fold, seen } = rig(3);
    await Promise.all([2, 0, 1].map((rank) => fold.output(chunk(rank, 'loss 2.31\nloss 2.30\n'))));
    expect(seen.text).toBe('[0-2] loss 2.31\n[0-2] loss 2.30\n');
  });

  test("differing lines stay separate, and each rank's lines keep their order", async () => {
    const { fold, seen } = rig(4);
    const texts = ['a\nb\n', 'a\nb\n', 'x\nb\n', 'b\na\n'];
    await Promise.all(texts.map((text, rank) => fold.output(chunk(rank, text))));
    expect(seen.text).toBe('[0-1] a\n[0-1,3] b\n[2] x\n[2] b\n[3] a\n');
  });

  test('the tag contains the hosts with --tag-output=host', async () => {
    const { fold, seen } = rig(4, { tagOutput: 'host' });
    await Promise.all([0, 1, 2, 3].map((rank) => fold.output(chunk(rank, 'a\n'))));
    expect(seen.text).toBe('[0-1@a,2-3@b] a\n');
  });

  test('a line waits neither for an ended rank nor forever for a living one', async () => {
    const { fold, seen } = rig(3);
    fold.rankEnded(2);
    await Promise.all([0, 1].map((rank) => fold.output(chunk(rank, 'a\n'))));
    expect(seen.text).toBe('[0-1] a\n');
    await fold.output(chunk(0, 'alone\n'));
    expect(seen.text).toBe('[0-1] a\n[0] alone\n');
  });

  test('a line that arrives in pieces passes through in its position', async () => {
    const { fold, seen, writer } = rig(2);
    const pieces = [chunk(0, 'a\nlong'), chunk(1, 'a\n'), chunk(0, 'er\nb\n'), chunk(1, 'b\n')];
    await Promise.all(pieces.map((one) => fold.output(one)));
    await writer.flush();
    expect(seen.text).toBe('[0] a\n[0] longer\n[1] a\n[0-1] b\n');
  });
});

test.each([1, 2, 3, 4, 5, 6, 7, 8])('folding keeps every line and the order of each rank (seed %i)', async (seed) => {
  const random = seededRandom(seed);
  const ranks = 5;
  const { fold, seen } = rig(ranks);
  const written = Array.from({ length: ranks }, () => new Array<string>());
  const taken: Promise<void>[] = [];
  for (let step = 0; step < 2000; step++) {
    const rank = random(ranks);
    const line = `line ${random(4)}`;
    written[rank]?.push(line);
    taken.push(fold.output(chunk(rank, `${line}\n`)));
    if (step === 1500) fold.rankEnded(3);
  }
  fold.flush();
  await Promise.all(taken);
  const read = Array.from({ length: ranks }, () => new Array<string>());
  for (const text of seen.text.trimEnd().split('\n')) {
    const [, list = '', line = ''] = /^\[([0-9,-]+)\] (.*)$/u.exec(text) ?? [];
    for (const part of list.split(',')) {
      const [first = '', last = first] = part.split('-');
      for (let rank = Number(first); rank <= Number(last); rank++) read[rank]?.push(line);
    }
  }
  expect(read).toEqual(written);
});
