/** Questions for stacks on their way from the launcher to the guardian and back. */
import { describe, expect, it, vi } from 'vitest';
import { ByteWriter } from '../../control/messages/bytes.ts';
import { encodeJson, makeFrame } from '../../control/messages/codec.ts';
import { ALL_RANKS, type Frame, FrameKind } from '../../control/messages/frame.ts';
import { StackProblem } from '../../control/messages/stack.ts';
import { StackReader } from '../../launcher/job/stacks.ts';
import { Stacks } from '../../worker/agent/stacks.ts';

const json = (frame: Frame | undefined): unknown => JSON.parse(Buffer.from(frame?.payload ?? []).toString());

/** An agent with ranks 3 and 4, whose guardian a test plays. */
function agent(telemetry: { jobRank: number; pid: number }[] = []) {
  const toGuardian: Frame[] = [];
  const up: Frame[] = [];
  const stacks = new Stacks({
    sendToGuardian: (frame) => toGuardian.push(frame),
    sendUp: (frame) => up.push(frame),
    telemetry: () => telemetry,
  });
  stacks.spawned(3, process.pid);
  stacks.spawned(4, process.pid);
  const ask = (request: number, ranks: readonly number[]): void =>
    stacks.asked(makeFrame(FrameKind.stacks, { request, payload: encodeJson({ ranks, deadlineMs: 1000 }) }));
  const say = (request: number, subject: number, payload?: Uint8Array): void =>
    stacks.read(makeFrame(FrameKind.readStack, { request, subject, ...(payload === undefined ? {} : { payload }) }));
  return { stacks, toGuardian, up, ask, say };
}

const gone = new ByteWriter().u32(StackProblem.gone).u32(0).u32(7).u32(0).string('').u32(0).finish();

describe('the agent', () => {
  it('the guardian gets the processes, and the launcher its answers with its own request number', () => {
    const { toGuardian, up, ask, say } = agent();
    ask(900, [3, 4, 5]);
    expect(toGuardian.map(({ kind, request }) => [kind, request])).toEqual([[FrameKind.readStack, 1]]);
    const order = Buffer.from(toGuardian[0]?.payload ?? []);
    expect([4, 8, 12, 16].map((at) => order.readUInt32LE(at))).toEqual([2, 3, process.pid, 4]);
    say(1, 3, gone);
    say(1, 3, gone); // once more than asked
    say(2, 4, gone); // of another reading
    say(1, 4, Buffer.from([1, 2, 3])); // damaged
    say(1, ALL_RANKS);
    expect(up.map(json)).toMatchObject([
      { type: 'rank', rank: 3, problem: 'its process has ended' },
      { type: 'rank', rank: 4, problem: 'the guardian could not read it' },
      { type: 'end' },
    ]);
    expect(up.every(({ kind, request }) => kind === FrameKind.stacks && request === 900)).toBe(true);
  });

  it('the guardian reads the process that has the engine', () => {
    const { toGuardian, ask } = agent([
      { jobRank: 3, pid: 2 ** 30 },
      { jobRank: 3, pid: process.ppid },
    ]);
    ask(1, [3]);
    expect(Buffer.from(toGuardian[0]?.payload ?? []).readUInt32LE(12)).toBe(process.ppid);
  });

  it('one question is put to the guardian after another', () => {
    const { toGuardian, up, ask, say } = agent();
    ask(1, [3]);
    ask(2, [4]);
    expect(toGuardian).toHaveLength(1);
    say(1, ALL_RANKS);
    expect(toGuardian).toHaveLength(2);
    say(2, 4, gone);
    say(2, ALL_RANKS);
    expect(up.map(({ request }) => request)).toEqual([1, 1, 2, 2]);
  });

  it('a rank that has ended is not looked for', () => {
    const { stacks, toGuardian, up, ask } = agent();
    stacks.ended(3);
    ask(1, [3]);
    expect(toGuardian).toEqual([]);
    expect(up.map(json)).toMatchObject([{ rank: 3, problem: 'its process has ended' }, { type: 'end' }]);
  });

  it('a guardian that does not answer is not waited for', () => {
    vi.useFakeTimers();
    try {
      const { up, ask } = agent();
      ask(1, [3]);
      vi.advanceTimersByTime(2000);
      expect(up.map(json)).toMatchObject([{ rank: 3, problem: 'the guardian could not read it' }, { type: 'end' }]);
    } finally {
      vi.useRealTimers();
    }
  });
});

const stack = (rank: number) => ({ type: 'rank', rank, pid: 9, problem: null, threads: [], omittedThreads: 0 });

/** A launcher with two hosts, whose agents a test plays. */
function launcher() {
  const sent: { readonly host: string; readonly frame: Frame }[] = [];
  const reader = new StackReader({
    hosts: () => [
      { name: 'a', ranks: [0, 1] },
      { name: 'b', ranks: [2, 3] },
    ],
    send: (host, frame) => sent.push({ host, frame }),
  });
  const answer = (host: string, value: object, request = 1): void =>
    reader.receive(host, makeFrame(FrameKind.stacks, { request, payload: encodeJson(value) }));
  return { reader, sent, answer };
}

describe('the launcher', () => {
  it('every host is asked for its own ranks, and the answers are in the order of the ranks', async () => {
    const { reader, sent, answer } = launcher();
    const report = reader.read(null);
    expect(sent.map(({ host, frame }) => [host, json(frame)])).toEqual([
      ['a', { ranks: [0, 1], deadlineMs: 2500 }],
      ['b', { ranks: [2, 3], deadlineMs: 2500 }],
    ]);
    answer('b', stack(3));
    answer('b', stack(0)); // another host's
    answer('b', stack(2));
    answer('b', { type: 'end' });
    answer('b', stack(2)); // after its end
    answer('c', stack(2)); // nobody has asked it
    answer('a', stack(0));
    answer('a', { type: 'end' });
    const { ranks, missing } = await report;
    expect(ranks.map(({ rank, host }) => `${rank} ${host}`)).toEqual(['0 a', '2 b', '3 b']);
    expect(missing).toBe('1');
  });

  it('only hosts of wanted ranks are asked, and nobody for none', async () => {
    const { reader, sent, answer } = launcher();
    const report = reader.read([3]);
    expect(sent.map(({ host }) => host)).toEqual(['b']);
    answer('b', { type: 'end' });
    expect((await report).missing).toBe('3');
    expect(await reader.read([9])).toMatchObject({ ranks: [], missing: '' });
  });

  it('hosts that are silent are not waited for', async () => {
    vi.useFakeTimers();
    try {
      const { reader } = launcher();
      const report = reader.read(null);
      vi.advanceTimersByTime(3500);
      expect((await report).missing).toBe('0-3');
    } finally {
      vi.useRealTimers();
    }
  });

  it('the end of the job ends all questions', async () => {
    const { reader } = launcher();
    const report = reader.read([0]);
    reader.close();
    expect((await report).missing).toBe('0');
  });
});
