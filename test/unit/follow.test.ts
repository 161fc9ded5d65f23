/** What a launcher keeps of a job's output, and the frames in which it sends it. */
import { describe, expect, test } from 'vitest';
import { ByteRing } from '../../launcher/jobs/byte-ring.ts';
import { FollowFrames, FollowKind, followFrame, parseFollowRequest } from '../../launcher/jobs/follow-wire.ts';
import { JobNote } from '../../launcher/jobs/note.ts';
import { JobTail } from '../../launcher/jobs/tail.ts';

describe('a ring of bytes', () => {
  test('has the last bytes, wherever they wrap', () => {
    const ring = new ByteRing(5);
    const starts = ['abc', 'defg', '', 'h'].map((text) => ring.append(Buffer.from(text)));
    expect(starts).toEqual([0, 3, 7, 7]);
    expect(ring.first).toBe(3);
    expect([ring.copy(3, 5), ring.copy(4, 2), ring.copy(7, 1)].map(String)).toEqual(['defgh', 'ef', 'h']);
  });

  test('keeps the end of what is longer than itself', () => {
    const ring = new ByteRing(4);
    ring.append(Buffer.from('xy'));
    expect(ring.append(Buffer.from('0123456789'))).toBe(2);
    expect(String(ring.copy(ring.first, 4))).toBe('6789');
  });
});

const tail = () => {
  const made = new JobTail({ tagOutput: 'auto', timestampOutput: false, onHang: 'report' }, new JobNote());
  made.event({ type: 'job-started', time: 1, jobId: 'j', ranks: 1, hosts: ['a'], programs: [['p']] });
  return made;
};
const chunk = (bytes: Uint8Array) =>
  ({ rank: 0, host: 'a', stream: 'stdout', time: 1, bytes, partial: false }) as const;

describe('kept output', () => {
  test('is a copy, in order with the events that a terminal shows', async () => {
    const made = tail();
    const bytes = Buffer.from('one\n');
    await made.output(chunk(bytes));
    bytes.fill(0);
    made.event({ type: 'notice', time: 2, message: 'm' });
    made.event({ type: 'rank-exited', time: 3, rank: 0, host: 'a', exitCode: 0, signal: null });
    await made.output(chunk(Buffer.from('two\n')));
    const pieces = made.kept?.pieces.map((piece) =>
      piece.type === 'output' ? String(piece.chunk.bytes) : piece.event.type,
    );
    expect(pieces).toEqual(['one\n', 'notice', 'two\n']);
    expect(made.kept?.dropped).toBe(0);
  });

  test('is bounded in bytes and in pieces, and counts what is dropped', async () => {
    const large = tail();
    const line = Buffer.alloc(300_000, 'x');
    for (let count = 0; count < 5; count += 1) await large.output(chunk(line));
    expect(large.kept).toMatchObject({ pieces: { length: 3 }, dropped: 600_000 });
    const small = tail();
    for (let count = 0; count < 10_000; count += 1) await small.output(chunk(Buffer.from('y\n')));
    expect(small.kept).toMatchObject({ pieces: { length: 8192 }, dropped: 2 * (10_000 - 8192) });
  });

  test('is empty where the job has written nothing', () => {
    expect(tail().kept).toMatchObject({ pieces: [], dropped: 0 });
  });

  test('is nothing before the job has begun', () => {
    expect(new JobTail({ tagOutput: 'auto', timestampOutput: false, onHang: 'report' }, new JobNote()).kept).toBeNull();
  });
});

describe('frames', () => {
  test('are read however they are cut', () => {
    const bytes = Buffer.concat([
      followFrame(FollowKind.stdout, Buffer.from('out')),
      followFrame(FollowKind.shown, Buffer.alloc(0)),
      followFrame(FollowKind.ended, Buffer.of(3)),
    ]);
    for (const size of [1, 4, 7, bytes.length]) {
      const frames = new FollowFrames();
      const read: string[] = [];
      for (let at = 0; at < bytes.length; at += size) {
        for (const { kind, payload } of frames.push(bytes.subarray(at, at + size)))
          read.push(`${kind} ${Buffer.from(payload).toString('latin1')}`);
      }
      expect(read).toEqual(['1 out', '4 ', '3 \u0003']);
    }
  });

  test('requests for stacks name ranks, or all of them', () => {
    for (const ranks of [null, [0, 7]])
      expect(parseFollowRequest(JSON.stringify({ key: 'k', stacks: { ranks } }))).toEqual({
        key: 'k',
        stacks: { ranks },
      });
  });

  test.each([
    '',
    '{',
    '[]',
    '{"key":"k"}',
    '{"key":"k","stacks":{}}',
    '{"key":"k","stacks":{"ranks":[-1]}}',
    '{"key":"k","stacks":{"ranks":["0"]}}',
  ])('%j is no request', (line) => {
    expect(parseFollowRequest(line)).toBeNull();
  });
});
