/** Lines of many ranks on one stream, and their files: held lines, broken lines, time limits, and equal lines that are folded. */
import { PassThrough, Writable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { OutputChunk } from '../../launcher/model/event.ts';
import { Batch } from '../../launcher/report/batch.ts';
import { Fold } from '../../launcher/report/fold.ts';
import { Lane } from '../../launcher/report/lane.ts';
import { Writer } from '../../launcher/report/writer.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] }));
afterEach(() => void vi.useRealTimers());

const MIB = 1024 * 1024;

const chunk = (rank: number, text: string, stream: OutputChunk['stream'] = 'stdout'): OutputChunk => ({
  rank,
  host: 'h',
  stream,
  time: 0,
  bytes: Buffer.from(text),
  partial: !text.endsWith('\n'),
});

function rig(ranks = 0) {
  const seen = { text: '' };
  const stream = new PassThrough();
  stream.on('data', (data: Buffer) => (seen.text += data.toString()));
  const writer = new Writer(() => stream);
  const lane = new Lane(writer, ({ rank, writers }) => `[${(writers ?? [{ rank }]).map((one) => one.rank).join()}]`);
  const fold = new Fold(
    lane,
    Array.from({ length: ranks }, (_, rank) => rank),
  );
  /** The text since the last call. */
  const written = async (): Promise<string> => {
    await writer.flush();
    const { text } = seen;
    seen.text = '';
    return text;
  };
  return { lane, fold, writer, written };
}

describe('a lane', () => {
  test('an open line holds other sources for 250 ms, and then it is broken', async () => {
    const { lane, written } = rig();
    for (const one of [chunk(0, 'a'), chunk(1, 'b\n'), chunk(0, 'c', 'stderr')]) void lane.output(one);
    expect([await written(), lane.lineOpen]).toEqual(['[0]a', true]);
    vi.advanceTimersByTime(249);
    expect(await written()).toBe('');
    vi.advanceTimersByTime(1);
    expect(await written()).toBe('\n[1]b\n[0]c');
    expect(vi.getTimerCount()).toBe(0);
    void lane.output(chunk(0, 'd\n', 'stderr'));
    expect([await written(), lane.lineOpen]).toEqual(['d\n', false]);
  });

  test('each line that is open in turn has its own 250 ms', async () => {
    const { lane, written } = rig();
    for (const one of [chunk(0, 'a'), chunk(1, 'b'), chunk(2, 'c\n')]) void lane.output(one);
    vi.advanceTimersByTime(250);
    expect(await written()).toBe('[0]a\n[1]b');
    vi.advanceTimersByTime(249);
    expect(await written()).toBe('');
    void lane.output(chunk(1, 'B\n'));
    expect(await written()).toBe('B\n[2]c\n');
    expect(vi.getTimerCount()).toBe(0);
  });

  test('a rank that has ended keeps no other waiting, and another rank’s end changes nothing', async () => {
    const { lane, written } = rig();
    for (const one of [chunk(1, 'a'), chunk(2, 'b\n')]) void lane.output(one);
    for (const rank of [0, 2, 3]) lane.rankEnded(rank);
    expect(await written()).toBe('[1]a');
    lane.rankEnded(1);
    expect(await written()).toBe('\n[2]b\n');
    void lane.output(chunk(1, 'c', 'stderr'));
    lane.rankEnded(1);
    expect(await written()).toBe('[1]c');
    void lane.output(chunk(4, 'd\n'));
    expect(await written()).toBe('\n[4]d\n');
  });

  test('restarted ranks begin new lines, and may hold others again', async () => {
    const { lane, written } = rig();
    void lane.output(chunk(0, 'a'));
    lane.rankEnded(0);
    lane.ranksAgain();
    for (const one of [chunk(0, 'b'), chunk(1, 'c\n')]) void lane.output(one);
    expect(await written()).toBe('[0]a\n[0]b');
    lane.lineEnded();
    lane.lineEnded();
    expect(await written()).toBe('[1]c\n');
  });

  test('the end of output writes all that was held, and an empty chunk changes nothing', async () => {
    const { lane, written } = rig();
    for (const one of [chunk(0, 'a'), chunk(0, ''), chunk(1, 'b'), chunk(2, 'c\n')]) void lane.output(one);
    lane.endLine();
    expect(await written()).toBe('[0]a\n[1]b\n[2]c\n');
    lane.endLine();
    expect(await written()).toBe('');
  });

  test('16 MiB that are held count as taken, and more waits', async () => {
    const { lane } = rig();
    void lane.output(chunk(0, 'a'));
    const taken: string[] = [];
    const hold = (name: string, bytes: number) =>
      lane.output(chunk(1, `${'x'.repeat(bytes - 1)}\n`)).then(() => taken.push(name));
    void hold('first', 16 * MIB);
    const second = hold('second', 1);
    await Promise.resolve();
    await Promise.resolve();
    expect(taken).toEqual(['first']);
    void lane.output(chunk(0, '\n'));
    await second;
    void lane.output(chunk(0, 'a'));
    await hold('third', 16 * MIB);
    expect(taken).toEqual(['first', 'second', 'third']);
  });
});

const all = (fold: Fold, ...chunks: readonly OutputChunk[]) => chunks.forEach((one) => void fold.output(one));

describe('folded lines', () => {
  test('a line waits 100 ms for the ranks that have not written it, and later ones wait for their own time', async () => {
    const { fold, written } = rig(3);
    all(fold, chunk(0, 'a\n'));
    vi.advanceTimersByTime(60);
    all(fold, chunk(1, 'b\n'));
    vi.advanceTimersByTime(39);
    expect(await written()).toBe('');
    vi.advanceTimersByTime(1);
    expect(await written()).toBe('[0]a\n');
    vi.advanceTimersByTime(59);
    expect(await written()).toBe('');
    all(fold, chunk(0, 'b\n'), chunk(2, 'b\n'));
    expect(await written()).toBe('[1,0,2]b\n');
    expect(vi.getTimerCount()).toBe(1);
    vi.advanceTimersByTime(1000);
    expect([await written(), vi.getTimerCount()]).toEqual(['', 0]);
  });

  test('a line is written as soon as each rank has written it or something after it', async () => {
    const { fold, written } = rig(3);
    all(fold, chunk(0, 'a\nb\n'), chunk(1, 'b\n'));
    expect(await written()).toBe('');
    all(fold, chunk(2, 'b\n'));
    expect(await written()).toBe('[0]a\n[0,1,2]b\n');
    all(fold, chunk(2, 'b\n'), chunk(1, 'b\n'), chunk(0, 'b\n'));
    expect(await written()).toBe('[2,1,0]b\n');
  });

  test('one rank that writes a line twice makes two lines', async () => {
    const { fold, written } = rig(2);
    all(fold, chunk(0, 'a\na\n'), chunk(1, 'a\n'));
    expect(await written()).toBe('[0,1]a\n');
    all(fold, chunk(1, 'a\n'));
    expect(await written()).toBe('[0,1]a\n');
  });

  test('the end of a rank lets lines go that wait for it alone', async () => {
    const { fold, written } = rig(3);
    all(fold, chunk(0, 'a\n'), chunk(1, 'a\n'));
    fold.rankEnded(2);
    fold.rankEnded(2);
    expect(await written()).toBe('[0,1]a\n');
    all(fold, chunk(0, 'b\n'));
    fold.rankEnded(0);
    expect(await written()).toBe('');
    all(fold, chunk(0, 'late\n'));
    expect(await written()).toBe('');
    all(fold, chunk(1, 'b\n'));
    expect(await written()).toBe('[0,1]b\n');
    all(fold, chunk(1, 'late\n'));
    expect(await written()).toBe('[0,1]late\n');
  });

  test('an unfinished line goes through at once, after what was held', async () => {
    const { fold, written } = rig(2);
    all(fold, chunk(0, 'a\n'), chunk(1, 'pro'));
    expect(await written()).toBe('[0]a\n[1]pro');
    all(fold, chunk(1, 'm'), chunk(1, 'pt\nb\n'));
    expect(await written()).toBe('mpt\n');
    all(fold, chunk(0, 'b\n'));
    expect(await written()).toBe('[1,0]b\n');
    all(fold, chunk(1, '\n'), chunk(0, '\n'), chunk(1, ''));
    expect(await written()).toBe('[1,0]\n');
  });

  test('more than a MiB of different lines is written at once', async () => {
    const { fold, written } = rig(2);
    all(fold, chunk(0, `${'x'.repeat(MIB)}\n`));
    expect(await written()).toBe('');
    all(fold, chunk(0, 'y\n'));
    expect((await written()).length).toBe(MIB + 4 + 5);
    all(fold, chunk(0, `${'x'.repeat(MIB)}\n`));
    expect(await written()).toBe('');
    fold.flush();
    expect((await written()).length).toBe(MIB + 4);
  });
});

describe('a batch', () => {
  test('memory up to the retained size is used again, and larger memory is not', () => {
    const batch = new Batch(4096);
    const buffers = [10, 10, 5000, 10].map((bytes) => {
      batch.append(new Uint8Array(bytes), '', true);
      const taken = batch.take();
      expect([taken.length, batch.empty]).toEqual([bytes, true]);
      batch.giveBack();
      return taken.buffer;
    });
    expect(buffers[0]?.byteLength).toBe(4096);
    expect(buffers[1]).not.toBe(buffers[0]);
    expect(buffers[2]?.byteLength).toBe(8192);
    expect(buffers[3]).toBe(buffers[1]);
  });

  test('a batch that is full to the last byte does not grow', () => {
    const batch = new Batch(0);
    batch.append(Buffer.alloc(4000, 'a'), '', true);
    batch.append(Buffer.alloc(96, 'b'), '', true);
    const full = batch.take();
    expect([full.buffer.byteLength, Buffer.from(full).toString()]).toEqual([4096, 'a'.repeat(4000) + 'b'.repeat(96)]);
    batch.append(Buffer.from('x'), '', true);
    batch.clear();
    expect([batch.empty, batch.take().length]).toEqual([true, 0]);
  });
});

const failing = (isTTY: boolean) => {
  const stream = new Writable({
    write: (_bytes, _encoding, done) => done(Object.assign(new Error('write EIO'), { code: 'EIO' })),
  });
  return Object.assign(stream, { isTTY });
};

const fails = (isTTY: boolean) => new Writer(() => failing(isTTY)).print('x');

describe('a writer', () => {
  test('a terminal that was closed counts as SIGHUP, and other errors as lost output', async () => {
    await expect(fails(true)).rejects.toMatchObject({ failure: { type: 'interrupt', signal: 'SIGHUP' } });
    await expect(fails(false)).rejects.toMatchObject({ failure: { type: 'output', message: 'write EIO' } });
  });

  test('a terminal is set not to block, and more than 64 KiB at once is reported once', async () => {
    const blocking: boolean[] = [];
    const stream = Object.assign(new Writable({ write: (_bytes, _encoding, done) => done() }), {
      isTTY: true,
      _handle: { setBlocking: (value: boolean) => void blocking.push(value) },
    });
    let busy = 0;
    const writer = new Writer(() => stream, { busy: () => void (busy += 1) });
    await writer.write(new Uint8Array(64 * 1024));
    expect([blocking, busy]).toEqual([[false], 0]);
    for (let again = 0; again < 2; again++) await writer.write(new Uint8Array(64 * 1024 + 1));
    expect([blocking, busy]).toEqual([[false], 1]);
  });
});
