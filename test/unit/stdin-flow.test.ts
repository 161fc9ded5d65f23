/** Our stdin to the ranks that read it: when reading begins, how fast it goes, and when it ends. */
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ALL_RANKS, FrameKind, STDIN_END, type Frame } from '../../control/messages/frame.ts';
import { StdinFlow } from '../../launcher/job/stdin-flow.ts';
import { turn } from '../rig/scripted-host.ts';

const KIB = 1024;

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

/** `hosts`: for each the ranks that read there. */
function rig(hosts: readonly (readonly number[])[], terminal = false) {
  const stream = new PassThrough();
  const place = { terminal, foreground: true };
  const sent = hosts.map((): [number, string, number][] => []);
  let typed = 0;
  const takeChunk = vi.fn();
  const source = { stream, isTerminal: () => place.terminal, isInForeground: () => place.foreground, takeChunk };
  const flow = new StdinFlow(() => void (typed += 1), source);
  for (const [index, ranks] of hosts.entries()) {
    const send = ({ kind, subject, flags, payload }: Frame): void => {
      expect(kind).toBe(FrameKind.stdin);
      sent[index]?.push([subject, payload.length > 20 ? `${payload.length}` : Buffer.from(payload).toString(), flags]);
    };
    const host = { send };
    for (const rank of ranks) flow.expect(rank, host);
  }
  const write = async (bytes: string | Uint8Array): Promise<void> => {
    stream.write(bytes);
    await turn();
  };
  const start = (): void => {
    for (const rank of hosts.flat()) flow.started(rank);
  };
  return { flow, stream, place, sent, write, start, takeChunk, typed: () => typed };
}

describe('the beginning', () => {
  test('reading begins when every reader has started', async () => {
    const { flow, sent, write } = rig([[0, 2], [1]]);
    await write('a');
    flow.started(0);
    flow.started(1);
    flow.started(7);
    await turn();
    expect(sent).toEqual([[], []]);
    flow.started(2);
    await turn();
    expect(sent).toEqual([[[ALL_RANKS, 'a', 0]], [[1, 'a', 0]]]);
  });

  test('what is read before the readers run reaches them, with the end', async () => {
    const { flow, sent, stream, start, write } = rig([[0]]);
    flow.begin();
    await write('a');
    stream.end();
    await turn();
    expect([sent, stream.isPaused()]).toEqual([[[]], true]);
    start();
    await turn();
    expect(sent).toEqual([
      [
        [0, 'a', 0],
        [0, '', STDIN_END],
      ],
    ]);
  });

  test('an empty input ends for readers that run later', async () => {
    const { flow, sent, stream, start } = rig([[0]]);
    flow.begin();
    stream.end();
    await turn();
    start();
    expect(sent).toEqual([[[0, '', STDIN_END]]]);
  });

  test('a job that ends before anything was read takes a chunk of a file', async () => {
    const { flow, takeChunk, write } = rig([[0]]);
    flow.begin();
    flow.drop(0);
    expect(takeChunk).toHaveBeenCalledOnce();
    const later = rig([[0]]);
    later.flow.begin();
    await later.write('a');
    later.flow.drop(0);
    expect(later.takeChunk).not.toHaveBeenCalled();
    await write('b');
  });

  test('a terminal is not read before the readers run', async () => {
    const { flow, stream } = rig([[0]], true);
    flow.begin();
    await turn();
    expect(stream.listenerCount('data')).toBe(0);
  });

  test('a reader that ends before it starts keeps nobody waiting', async () => {
    const { flow, sent, write } = rig([[0, 1]]);
    flow.started(0);
    flow.drop(1);
    flow.drop(1);
    await write('a');
    expect(sent).toEqual([[[0, 'a', 0]]]);
  });

  test('a stream that nobody began to read stays open at the end', async () => {
    const { flow, stream } = rig([[0]]);
    flow.drop(5);
    flow.drop(0);
    flow.started(0);
    await turn();
    expect([stream.destroyed, stream.listenerCount('data')]).toEqual([false, 0]);
  });
});

describe('the flow', () => {
  test('input goes in pieces of at most 64 KiB', async () => {
    const { start, sent, write } = rig([[3]]);
    start();
    await write(new Uint8Array(64 * KIB));
    await write(new Uint8Array(130 * KIB));
    expect(sent[0]?.map(([, length]) => Number(length))).toEqual([64 * KIB, 64 * KIB, 64 * KIB, 2 * KIB]);
  });

  test('the stream pauses while any reader has 256 KiB to take', async () => {
    const { flow, start, stream, write } = rig([[0, 1]]);
    start();
    await write(new Uint8Array(256 * KIB - 1));
    expect(stream.isPaused()).toBe(false);
    await write('x');
    expect(stream.isPaused()).toBe(true);
    flow.credit(0, 1);
    expect(stream.isPaused()).toBe(true);
    flow.credit(1, 2);
    expect(stream.isPaused()).toBe(false);
    flow.credit(9, 1);
    expect(() => flow.credit(0, 0)).toThrow('credit of no byte for the input of rank 0');
  });

  test('credit beyond what was sent counts as nothing', async () => {
    const { flow, start, stream, write } = rig([[0]]);
    start();
    flow.credit(0, 1000);
    await write(new Uint8Array(256 * KIB));
    expect(stream.isPaused()).toBe(true);
  });

  test('the stream goes on when the reader that held it up is dropped, and closes with the last reader', async () => {
    const { flow, start, stream, write, sent } = rig([[0], [1]]);
    start();
    await write(new Uint8Array(200 * KIB));
    flow.credit(0, 200 * KIB);
    await write(new Uint8Array(56 * KIB));
    expect(stream.isPaused()).toBe(true);
    flow.drop(1);
    expect([stream.isPaused(), stream.destroyed]).toEqual([false, false]);
    flow.drop(0);
    expect([stream.destroyed, stream.listenerCount('data')]).toEqual([true, 0]);
    await turn();
    expect(sent[0]?.at(-1)?.[2]).toBe(0);
  });

  test.each(['end', 'error'] as const)('the readers get the end of input after the event %s, once', async (event) => {
    const { start, stream, sent } = rig([[0, 1]]);
    start();
    if (event === 'end') stream.end('last');
    else stream.destroy(new Error('EIO'));
    await turn();
    await turn();
    const end = [ALL_RANKS, '', STDIN_END];
    expect(sent[0]).toEqual(event === 'end' ? [[ALL_RANKS, 'last', 0], end] : [end]);
  });
});

describe('a terminal', () => {
  test('each typed line is reported, and input that is no line or from no terminal is not', async () => {
    const { start, place, write, typed } = rig([[0]], true);
    start();
    await write('half');
    expect(typed()).toBe(0);
    await write(' line\n');
    expect(typed()).toBe(1);
    place.terminal = false;
    await write('piped\n');
    expect(typed()).toBe(1);
  });

  test('the flow leaves a terminal alone in the background, and looks every 250 ms', async () => {
    const { start, stream, place, sent } = rig([[0]], true);
    place.foreground = false;
    stream.write('a');
    start();
    vi.advanceTimersByTime(1000);
    await turn();
    expect(sent[0]).toEqual([]);
    place.foreground = true;
    vi.advanceTimersByTime(249);
    await turn();
    expect(sent[0]).toEqual([]);
    vi.advanceTimersByTime(1);
    await turn();
    expect(sent[0]).toEqual([[0, 'a', 0]]);
  });

  test('a suspended flow reads nothing before it resumes, and a job in the background then looks again', async () => {
    const { flow, start, stream, place, write, sent } = rig([[0]], true);
    flow.suspend();
    flow.resume();
    start();
    flow.suspend();
    expect(stream.isPaused()).toBe(true);
    await write('a');
    expect([sent[0], vi.getTimerCount()]).toEqual([[], 0]);
    place.foreground = false;
    flow.resume();
    expect([stream.isPaused(), vi.getTimerCount()]).toEqual([true, 1]);
    flow.stop();
    expect([stream.destroyed, vi.getTimerCount()]).toEqual([true, 0]);
  });

  test('a file is read on while the job is suspended', () => {
    const { flow, start, stream } = rig([[0]]);
    start();
    flow.suspend();
    expect(stream.isPaused()).toBe(false);
  });
});
