/** An agent that is a process of its own, before it has an order that it can follow. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { LinkHandler } from '../../control/link/link.ts';
import { encodeJson, makeFrame } from '../../control/messages/codec.ts';
import { FrameKind, type Frame } from '../../control/messages/frame.ts';
import type { AgentLink } from '../../worker/agent/serve.ts';
import { installedVersion } from '../../worker/agent/installation.ts';
import { Watchdog } from '../../worker/agent/watchdog.ts';

/** What process.exit, which does not return, becomes in this process. */
class Exit extends Error {}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  vi.resetModules(); // the module holds the one agent of its process
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

async function served() {
  const exits: unknown[] = [];
  let stderr = '';
  vi.spyOn(process, 'exit').mockImplementation((status) => {
    exits.push(status);
    throw new Exit();
  });
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    stderr += String(text);
    return true;
  });
  const sent: Frame[] = [];
  const { promise: opened, resolve: open } = Promise.withResolvers<LinkHandler>();
  let closes = 0;
  const link: AgentLink = {
    open,
    send: (frame) => void sent.push(frame),
    flush: () => undefined,
    close: () => void (closes += 1),
    died: new Promise(() => {}),
    connection: null,
  };
  const { serve, theAgent } = await import('../../worker/agent/serve.ts');
  serve(link, Watchdog.ofThisProcess());
  return {
    handler: await opened,
    sent,
    exits,
    theAgent,
    closes: () => closes,
    stderr: () => stderr,
  };
}

const order = (version: string): Frame => makeFrame(FrameKind.order, { payload: encodeJson({ version }) });

describe('an agent without an order', () => {
  test('gives up after 30 s', async () => {
    const { exits, stderr } = await served();
    vi.advanceTimersByTime(29_999);
    expect(exits).toEqual([]);
    expect(() => vi.advanceTimersByTime(1)).toThrow(Exit);
    expect(exits).toEqual([125]);
    expect(stderr()).toBe('ncclrun agent: no order came\n');
  });

  test.each([
    [null, ''],
    ['connection reset', 'ncclrun agent: connection reset\n'],
  ])('gives up when the launcher closes the connection (%s)', async (problem, line) => {
    const { handler, exits, stderr } = await served();
    expect(() => handler.closed(problem)).toThrow(Exit);
    expect(exits).toEqual([125]);
    expect(stderr()).toBe(`${line}ncclrun agent: the launcher closed the connection before its order came\n`);
  });

  test('gives up when the first message is another one', async () => {
    const { handler, exits, stderr } = await served();
    expect(() => handler.frame(makeFrame(FrameKind.heartbeat))).toThrow(Exit);
    expect(exits).toEqual([125]);
    expect(stderr()).toContain('ncclrun agent: the first message is no order; ncclrun starts this program\n');
  });
});

test('an agent of another version refuses and closes the connection', async () => {
  const { handler, sent, exits, closes, theAgent, stderr } = await served();
  handler.frame(order('0.0.0'));
  expect(sent.map(({ kind }) => kind)).toEqual([FrameKind.failure]);
  expect(JSON.parse(Buffer.from(sent[0]?.payload ?? []).toString())).toMatchObject({
    type: 'refusal',
    message: expect.stringMatching(
      new RegExp(`^ncclrun ${installedVersion()} is installed in .* but the launcher is version 0\\.0\\.0$`),
    ),
    remedy: 'install the same version on every host',
  });
  expect([closes(), exits, theAgent()]).toEqual([1, [], null]);
  expect(stderr()).toBe('');
});

test('an agent whose refusal does not leave exits after 5 s', async () => {
  const { handler, exits } = await served();
  handler.frame(order('0.0.0'));
  vi.advanceTimersByTime(4999);
  expect(exits).toEqual([]);
  expect(() => vi.advanceTimersByTime(1)).toThrow(Exit);
  expect(exits).toEqual([0]);
});
