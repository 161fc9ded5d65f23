/** A link whose bytes the addon moves: what leaves together, and how it ends. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { encodeFrame, makeFrame } from '../../control/messages/codec.ts';
import { FRAME_HEADER_BYTES, FrameKind, type Frame } from '../../control/messages/frame.ts';
import { ProtocolError } from '../../control/messages/protocol-error.ts';
import { NativeLink } from '../../worker/engine/native-link.ts';
import type { LocalServer, LocalServerEvent, Native } from '../../worker/engine/native.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'hrtime'] });
});
afterEach(() => {
  vi.useRealTimers();
});

const tick = (): Promise<void> => new Promise((resolve) => process.nextTick(resolve));
const server: LocalServer = Object.create(null);
const frame = (bytes = 0): Frame => makeFrame(FrameKind.output, { payload: new Uint8Array(bytes) });
const size = (...payloads: number[]): number => payloads.reduce((sum, one) => sum + FRAME_HEADER_BYTES + one, 0);

function linked(gatherMs = 0, stopped = 0) {
  const calls: string[] = [];
  const written: Uint8Array[] = [];
  const native: Native = Object.assign(Object.create(null), {
    localServerWrite(_: LocalServer, connection: number, bytes: Uint8Array) {
      written.push(bytes);
      calls.push(`write ${bytes.length} to ${connection}`);
    },
    localServerDisconnect: (_: LocalServer, connection: number) => void calls.push(`disconnect ${connection}`),
    localServerClose: () => void calls.push('close'),
    childKill: (_: LocalServer, group: boolean) => void calls.push(`kill ${group ? 'group' : 'child'}`),
    childStopped: () => stopped,
  });
  const events: ((event: LocalServerEvent) => void)[] = [];
  const link = new NativeLink(
    native,
    (onEvent) => {
      events.push(onEvent);
      return server;
    },
    gatherMs,
  );
  const event = (one: LocalServerEvent): void => events.forEach((tell) => tell(one));
  const take = (): string[] => calls.splice(0);
  return { link, take, event, written };
}
const died = { type: 'died', connection: 1, waitStatus: 256, stderr: 'r' } as const;
const received = (kind: number): LocalServerEvent => ({
  type: 'frame',
  connection: 1,
  kind,
  flags: 1,
  subject: 2,
  request: 3,
  payload: new Uint8Array(0),
});

describe('frames', () => {
  test('the frames of one event-loop tick leave in one write', async () => {
    const { link, take, written } = linked();
    link.send(frame(1));
    link.send(frame(2));
    expect(take()).toEqual([]);
    await tick();
    expect(take()).toEqual([`write ${size(1, 2)} to 1`]);
    expect(written[0]).toEqual(Buffer.concat([encodeFrame(frame(1)), encodeFrame(frame(2))]));
    link.send(frame(3));
    await tick();
    expect(take()).toEqual([`write ${size(3)} to 1`]);
    link.flush();
    expect(take()).toEqual([]);
  });

  test('64 KiB leave at once', async () => {
    const { link, take } = linked();
    link.send(frame(65_536 - size(0) - 1));
    expect(take()).toEqual([]);
    link.send(frame(0));
    expect(take()).toEqual([`write ${65_535 + size(0)} to 1`]);
    link.send(frame(65_536 - size(0)));
    expect(take()).toEqual(['write 65536 to 1']);
    await tick();
    expect(take()).toEqual([]);
  });

  test('frames soon after a write leave together when its time is over', async () => {
    const { link, take } = linked(100);
    link.send(frame(1));
    await tick();
    expect(take()).toEqual([`write ${size(1)} to 1`]);
    vi.advanceTimersByTime(40);
    link.send(frame(2));
    await tick();
    link.send(frame(3));
    vi.advanceTimersByTime(59);
    expect(take()).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(take()).toEqual([`write ${size(2, 3)} to 1`]);
    vi.advanceTimersByTime(100);
    link.send(frame(4));
    await tick();
    expect(take()).toEqual([`write ${size(4)} to 1`]);
  });
});

const refuse = (error: Error) => () => {
  throw error;
};

describe('the other side', () => {
  test('its frames reach the handler, and an unknown kind or a refused frame ends the link', () => {
    const problems: (string | null)[] = [];
    const frames: number[] = [];
    const { link, take, event } = linked();
    event(received(FrameKind.output));
    const closed = (problem: string | null): number => problems.push(problem);
    link.open({ frame: ({ kind }) => frames.push(kind), closed });
    event(received(FrameKind.output));
    event({ type: 'caughtUp', connection: 1 });
    event(received(0x7f));
    event(received(FrameKind.output));
    event({ type: 'closed', connection: 1, reason: '' });
    expect([frames, problems, take()]).toEqual([
      [FrameKind.output],
      ["the frame's kind, 127, is unknown"],
      ['disconnect 1'],
    ]);
    const strict = linked();
    strict.link.open({ frame: refuse(new ProtocolError('odd')), closed });
    strict.event(received(FrameKind.output));
    expect([problems.at(-1), strict.take()]).toEqual(['odd', ['disconnect 1']]);
    const broken = linked();
    broken.link.open({ frame: refuse(new TypeError('a fault')), closed });
    expect(() => broken.event(received(FrameKind.output))).toThrow('a fault');
  });

  test.each([
    ['', null],
    ['reset', 'reset'],
  ])('the handler gets the end of the stream with the reason %j once', (reason, expected) => {
    const problems: (string | null)[] = [];
    const { link, event } = linked();
    link.open({ frame: () => undefined, closed: (problem) => problems.push(problem) });
    event({ type: 'closed', connection: 1, reason });
    event({ type: 'closed', connection: 1, reason });
    expect(problems).toEqual([expected]);
  });
});

describe('the end', () => {
  test('close sends what is left, and a link to a process that has died sends nothing', async () => {
    const { link, take, event } = linked();
    link.send(frame(1));
    link.close();
    expect(take()).toEqual([`write ${size(1)} to 1`, 'disconnect 1']);
    link.kill();
    link.killAlone();
    expect(take()).toEqual(['kill group', 'kill child']);
    link.send(frame(1));
    event(died);
    link.close();
    link.kill();
    link.killAlone();
    link.open({ frame: () => undefined, closed: () => undefined });
    event(received(0x7f));
    expect([take(), link.stoppedChild]).toEqual([[], null]);
    await expect(link.died).resolves.toMatchObject({ waitStatus: 256, stderr: 'r' });
    link.release();
    expect(take()).toEqual(['close']);
  });

  test('a child that is let go is killed alone after two seconds, if it has not ended', async () => {
    const { link, take } = linked();
    link.letGo();
    expect(take()).toEqual(['disconnect 1']);
    vi.advanceTimersByTime(1999);
    expect(take()).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(take()).toEqual(['kill child']);
    const ended = linked();
    ended.link.letGo();
    ended.event(died);
    await ended.link.died;
    expect(vi.getTimerCount()).toBe(0);
  });

  test('a stopped child has its number', () => {
    expect([linked(0, 7).link.stoppedChild, linked(0, 0).link.stoppedChild]).toEqual([7, null]);
  });
});
