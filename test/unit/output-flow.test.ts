/** Output from the hosts to the reporter: order, bounds, credit, and the chunks that wait joined. */
import { describe, expect, test } from 'vitest';
import { makeFrame } from '../../control/messages/codec.ts';
import { FrameKind, OUTPUT_END, OUTPUT_PARTIAL, OUTPUT_STDERR } from '../../control/messages/frame.ts';
import { decodeCredit } from '../../control/messages/payload.ts';
import { JoinedOutput } from '../../launcher/job/joined-output.ts';
import { OutputFlow } from '../../launcher/job/output-flow.ts';
import type { OutputChunk } from '../../launcher/model/event.ts';
import { turn } from '../rig/scripted-host.ts';

/** A host that may have `credit` bytes under way, and a reporter that takes a chunk when the test says so. */
function rig(credit = 100) {
  const grants: number[] = [];
  const taking: { chunk: OutputChunk; done: PromiseWithResolvers<void> }[] = [];
  const errors: unknown[] = [];
  const reporter = {
    event: () => {},
    output(chunk: OutputChunk) {
      const done = Promise.withResolvers<void>();
      taking.push({ chunk, done });
      return done.promise;
    },
    result: () => Promise.resolve(),
  };
  const hostNamed = (name: string) => ({
    name,
    outputCredit: credit,
    send: ({ payload }: { payload: Uint8Array }) => void grants.push(decodeCredit(payload)),
  });
  const host = hostNamed('h');
  const flow = new OutputFlow(reporter, credit, (error) => void errors.push(error));
  const say = (text: string, rank = 0, flags = 0, from = host): void =>
    flow.take(from, makeFrame(FrameKind.output, { subject: rank, flags, payload: Buffer.from(text) }));
  const take = async (count: number): Promise<void> => {
    for (const { done } of taking.splice(0, count)) done.resolve();
    await turn();
  };
  return { flow, host, hostNamed, grants, taking, errors, say, take };
}

const textOf = ({ bytes }: OutputChunk): string => Buffer.from(bytes).toString();

describe('output of a rank', () => {
  test.each([
    [0, 'stdout', false],
    [OUTPUT_STDERR, 'stderr', false],
    [OUTPUT_PARTIAL, 'stdout', true],
    [OUTPUT_STDERR | OUTPUT_PARTIAL | OUTPUT_END, 'stderr', true],
  ])('the reporter gets a chunk with the flags %i as a part of %s, partial: %s', (flags, stream, partial) => {
    const { say, taking } = rig();
    say('x', 3, flags);
    expect(taking.map(({ chunk }) => ({ ...chunk, bytes: textOf(chunk) }))).toMatchObject([
      { rank: 3, host: 'h', stream, partial, bytes: 'x' },
    ]);
  });

  test('a stream ends once, and the other streams go on', () => {
    const { say, taking } = rig();
    say('', 0, OUTPUT_STDERR | OUTPUT_END);
    say('a', 0);
    say('b', 1, OUTPUT_STDERR);
    expect(() => say('c', 0, OUTPUT_STDERR)).toThrow('output of rank 0 behind its end');
    say('d', 0, OUTPUT_END);
    expect(() => say('', 0, OUTPUT_END)).toThrow('output of rank 0 behind its end');
    say('e', 1);
    expect(taking.map(({ chunk }) => textOf(chunk))).toEqual(['a', 'b', 'd', 'e']);
  });

  test('a host may send exactly its credit, and not a byte more', () => {
    const { say, taking } = rig(10);
    say('0123456789');
    expect(() => say('xy')).toThrow('2 bytes of output beyond the credit it was given');
    expect(taking).toHaveLength(1);
    expect(() => rig().say('', 4)).toThrow('output of rank 4 without a byte');
  });

  test('credit returns as soon as a quarter of the window was taken, as much as was taken', async () => {
    const { say, take, grants } = rig(100);
    say('x'.repeat(24));
    say('y');
    say('z'.repeat(30));
    await take(1);
    expect(grants).toEqual([]);
    await take(1);
    expect(grants).toEqual([25]);
    await take(1);
    expect(grants).toEqual([25, 30]);
    say('x'.repeat(100));
    expect(() => say('yz')).toThrow('2 bytes of output beyond');
  });

  test('a host is held up while the reporter has not taken its output', async () => {
    const { flow, host, hostNamed, say, take } = rig();
    const other = hostNamed('other');
    expect(flow.isHeldUp(host)).toBe(false);
    say('a');
    say('b', 1, 0, other);
    expect([flow.isHeldUp(host), flow.isHeldUp(other)]).toEqual([true, true]);
    await take(1);
    expect([flow.isHeldUp(host), flow.isHeldUp(other)]).toEqual([false, true]);
  });

  test('the flow is settled when everything was taken', async () => {
    const { flow, say, take } = rig();
    await flow.settled();
    say('a');
    say('b');
    let settled = false;
    void flow.settled().then(() => (settled = true));
    await take(1);
    expect(settled).toBe(false);
    await take(1);
    expect(settled).toBe(true);
  });

  test('a reporter that fails takes the bytes, so that the ranks do not wait for it', async () => {
    const { flow, host, say, taking, errors, grants } = rig();
    say('x'.repeat(50));
    taking[0]?.done.reject(new Error('closed'));
    await turn();
    expect(errors).toEqual([new Error('closed')]);
    expect(grants).toEqual([50]);
    expect(flow.isHeldUp(host)).toBe(false);
  });
});

describe('output that the reporter is slow to take', () => {
  test('the chunks of a host from 4097 on wait joined until the reporter has less than 2048', async () => {
    const { say, take, taking } = rig(10_000);
    for (let piece = 0; piece < 4096; piece++) say('x');
    say('a');
    await take(1);
    say('b');
    say('c', 1);
    expect(taking).toHaveLength(4095);
    await take(2047);
    expect(taking).toHaveLength(2048);
    await take(1);
    expect(taking.slice(2047).map(({ chunk }) => [chunk.rank, textOf(chunk)])).toEqual([
      [0, 'ab'],
      [1, 'c'],
    ]);
    say('d');
    expect(taking).toHaveLength(2050);
  });

  test('joined chunks keep the first time, the last partial, and each stream of each rank for itself', () => {
    const joined = new JoinedOutput();
    const add = (rank: number, stream: 'stdout' | 'stderr', text: string, time: number, partial: boolean): void =>
      joined.add({ rank, host: 'h', stream, time, bytes: Buffer.from(text), partial });
    expect([joined.isEmpty, joined.take()]).toEqual([true, []]);
    add(0, 'stdout', 'one ', 1, true);
    add(0, 'stderr', 'error', 2, true);
    add(0, 'stdout', 'two', 3, true);
    add(0, 'stdout', ' and a much longer three\n', 4, false);
    expect(joined.isEmpty).toBe(false);
    expect(joined.take().map((chunk) => [chunk.stream, chunk.time, chunk.partial, textOf(chunk)])).toEqual([
      ['stdout', 1, false, 'one two and a much longer three\n'],
      ['stderr', 2, true, 'error'],
    ]);
    expect([joined.isEmpty, joined.take()]).toEqual([true, []]);
  });
});
