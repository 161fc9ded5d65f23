/** Messages about stacks: what the guardian and the agents send, whole and damaged. */
import { describe, expect, it } from 'vitest';
import { parseStackAnswer, parseStackQuery } from '../../control/link/stack.ts';
import { ByteWriter } from '../../control/messages/bytes.ts';
import { encodeJson } from '../../control/messages/codec.ts';
import { ProtocolError } from '../../control/messages/protocol-error.ts';
import { decodeReadStack, encodeStackOrder, MAX_THREADS, StackProblem } from '../../control/messages/stack.ts';

/** As native/stack/report.cc writes it: one thread with a native frame and a Python frame. */
function written(threads = 1): Buffer {
  const writer = new ByteWriter().u32(0).u32(0).u32(4711).u32(2).string('').u32(threads);
  writer.u32(4712).u32('S'.charCodeAt(0)).u32(3).string('worker\u001B');
  writer.u32(1).string('poll').u64(17).string('/lib/libc.so.6');
  writer.u32(1).string('train').string('/srv/train.py').u32(214).u32(1);
  return writer.finish();
}

describe('stacks of the guardian', () => {
  it('a stack is decoded, and its texts are harmless', () => {
    expect(decodeReadStack(written())).toEqual({
      problem: StackProblem.none,
      detail: 0,
      pid: 4711,
      omittedThreads: 2,
      pythonProblem: '',
      threads: [
        {
          thread: 4712,
          state: 'S',
          isRead: true,
          isCut: true,
          name: String.raw`worker\x1b`,
          native: [{ function: 'poll', module: '/lib/libc.so.6' }],
          python: [{ function: 'train', file: '/srv/train.py', line: 214, isEntry: true }],
        },
      ],
    });
  });

  it('every truncated stack causes a ProtocolError', () => {
    const whole = written();
    for (let length = 0; length < whole.length; length++)
      expect(() => decodeReadStack(whole.subarray(0, length)), `${length} bytes`).toThrow(ProtocolError);
    expect(() => decodeReadStack(Buffer.concat([whole, Buffer.alloc(1)]))).toThrow('1 byte too many');
  });

  it('too many threads and unknown problems cause a ProtocolError', () => {
    expect(() => decodeReadStack(written(MAX_THREADS + 1))).toThrow(`${MAX_THREADS + 1} threads`);
    const unknown = Buffer.from(written());
    unknown.writeUInt32LE(99, 0);
    expect(() => decodeReadStack(unknown)).toThrow('problem 99');
  });

  it('an order has the deadline and the processes', () => {
    const order = encodeStackOrder(2500, [{ rank: 3, pid: 4711 }]);
    expect([0, 4, 8, 12].map((at) => order.readUInt32LE(at))).toEqual([2500, 1, 3, 4711]);
    expect(order).toHaveLength(16);
  });
});

describe('stacks of agents', () => {
  const thread = { thread: 1, name: 'a', isMain: true, isEngine: false, problem: null, frames: [], isCut: false };
  const rank = { type: 'rank', rank: 3, pid: 4711, problem: null, threads: [thread], omittedThreads: 0 };

  it('queries and answers pass their check', () => {
    expect(parseStackQuery(encodeJson({ ranks: [1, 2], deadlineMs: 2500 }))).toEqual({
      ranks: [1, 2],
      deadlineMs: 2500,
    });
    expect(parseStackAnswer(encodeJson(rank))).toEqual(rank);
    expect(parseStackAnswer(encodeJson({ type: 'end' }))).toEqual({ type: 'end' });
  });

  it.each([
    { ...rank, rank: -1 },
    { ...rank, threads: Array.from({ length: MAX_THREADS + 1 }, () => thread) },
    { ...rank, problem: 'x'.repeat(600) },
    { ...rank, threads: [{ ...thread, frames: [{ language: 'cobol' }] }] },
    { type: 'other' },
  ])('answer %# causes a ProtocolError', (answer) => {
    expect(() => parseStackAnswer(encodeJson(answer))).toThrow(ProtocolError);
  });

  it('a deadline of a minute and bytes that are no JSON cause a ProtocolError', () => {
    expect(() => parseStackQuery(encodeJson({ ranks: [], deadlineMs: 60_000 }))).toThrow(ProtocolError);
    expect(() => parseStackQuery(Buffer.from('{'))).toThrow('stacks: 1 bytes that are no JSON');
  });
});
