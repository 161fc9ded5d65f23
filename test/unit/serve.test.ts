/** An agent that is a process of its own, before it has an order that it can follow. */
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { LinkHandler } from '../../control/link/link.ts';
import { encodeJson, makeFrame } from '../../control/messages/codec.ts';
import { FrameKind, type Frame } from '../../control/messages/frame.ts';
import type { beginAgent } from '../../worker/agent/begin.ts';
import type { AgentLink } from '../../worker/agent/serve.ts';
import { installedVersion } from '../../worker/agent/installation.ts';
import { Watchdog } from '../../worker/agent/watchdog.ts';
import type { playedAgent } from '../rig/played-agent.ts';
import { scriptedJob } from '../rig/scripted-host.ts';

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

async function served(start?: typeof beginAgent) {
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
  const { promise: died, resolve: die } = Promise.withResolvers<void>();
  let closes = 0;
  const link: AgentLink = {
    open,
    send: (frame) => void sent.push(frame),
    flush: () => undefined,
    close: () => void (closes += 1),
    died,
    connection: null,
  };
  const { serve, theAgent } = await import('../../worker/agent/serve.ts');
  serve(link, Watchdog.ofThisProcess(), start);
  return {
    handler: await opened,
    sent,
    exits,
    die,
    theAgent,
    closes: () => closes,
    stderr: () => stderr,
  };
}

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** An agent with an order that it follows; `played`: the agents of its orders, whose guardians the test plays. */
async function ordered({ maxRestarts = 0, stays = false } = {}) {
  const played: ReturnType<typeof playedAgent>[] = [];
  const { order: usual } = scriptedJob(['a'], 2).agents[0] ?? {};
  const own = { version: installedVersion(), hangAfterMs: 0, preload: false, maxRestarts, stays };
  const rig = await import('../rig/played-agent.ts'); // with the same modules as the agent's
  const agent = await served(({ link, order: given, onEnded }) => {
    const one = rig.playedAgent({ process: { link, order: given, onEnded } });
    played.push(one);
    onTestFinished(one.remove);
    return one.agent;
  });
  const give = (epoch = 0) =>
    agent.handler.frame(makeFrame(FrameKind.order, { payload: encodeJson({ ...usual, ...own, epoch }) }));
  give();
  /** The ranks of the newest order end, and its guardian does. */
  const end = async () => {
    agent.handler.frame(makeFrame(FrameKind.end));
    played.at(-1)?.fromGuardian(FrameKind.ended);
    await settle();
    played.at(-1)?.guardianDies(0);
    await vi.waitFor(() => expect(played.at(-1)?.guardian.at(-1)).toBe('released'));
    await settle();
  };
  const state = () => agent.theAgent()?.hasEnded;
  return { ...agent, played, give, end, state };
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

describe('an agent with an order', () => {
  test('does not give up, and passes the launcher’s frames on', async () => {
    const { handler, exits, played, state } = await ordered();
    vi.advanceTimersByTime(30_000);
    expect([exits, state()]).toEqual([[], false]);
    handler.frame(makeFrame(FrameKind.completed));
    handler.frame(makeFrame(FrameKind.heartbeat));
    expect(played[0]?.bootstrap).toEqual([`frame ${FrameKind.completed}`]);
  });

  test('closes its connection after its ranks, and exits when all has been sent', async () => {
    const { end, closes, die, exits, state } = await ordered();
    expect(closes()).toBe(0);
    await end();
    expect([closes(), exits, state()]).toEqual([1, [], true]);
    const failed = new Promise((resolve) => process.once('unhandledRejection', resolve));
    die();
    expect(await failed).toBeInstanceOf(Exit);
    await settle();
    expect(exits).toEqual([0]);
  });

  test('reports a frame that no launcher sends, and ends its ranks', async () => {
    const { handler, played, exits, stderr } = await ordered();
    handler.frame(makeFrame(FrameKind.hello));
    expect(stderr()).toBe(`ncclrun agent: a frame of kind ${FrameKind.hello} came from the launcher\n`);
    expect([exits, played[0]?.guardian.at(-1)]).toEqual([[], 'let go']);
  });

  test('refuses a second order while it follows one', async () => {
    const { give, played, stderr } = await ordered({ maxRestarts: 1 });
    give(1);
    expect(stderr()).toBe(`ncclrun agent: a frame of kind ${FrameKind.order} came from the launcher\n`);
    expect(played).toHaveLength(1);
  });

  test('ends its ranks when the launcher has gone, and then exits', async () => {
    const { handler, played, closes, stderr } = await ordered();
    handler.closed('connection reset');
    expect([stderr(), played[0]?.guardian.at(-1)]).toEqual(['ncclrun agent: connection reset\n', 'let go']);
    played[0]?.fromGuardian(FrameKind.ended);
    played[0]?.guardianDies(0);
    await vi.waitFor(() => expect(closes()).toBe(1));
  });

  test('ends its ranks and exits when the launcher is silent for longer than the lease', async () => {
    vi.useFakeTimers({
      toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance', 'hrtime'],
    });
    const { played, closes, stderr } = await ordered({ maxRestarts: 1 });
    vi.advanceTimersByTime(600_000);
    expect(stderr()).toMatch(
      /^ncclrun agent: the launcher was silent for [0-9]+ ms; ending the ranks of this host\n$/u,
    );
    expect(played[0]?.guardian).toContain('let go');
    played[0]?.fromGuardian(FrameKind.ended);
    played[0]?.guardianDies(0);
    await vi.waitFor(() => expect(closes()).toBe(1));
  });
});

describe('an agent whose launcher may order again', () => {
  test('stays after its ranks and follows the next order, the last of which ends it', async () => {
    const { give, end, played, closes, state } = await ordered({ maxRestarts: 1 });
    await end();
    expect([closes(), state()]).toEqual([0, true]);
    give(1);
    expect([played.length, state()]).toEqual([2, false]);
    await end();
    expect(closes()).toBe(1);
  });

  test('exits at once when the launcher orders nothing more', async () => {
    const { handler, end, exits } = await ordered({ maxRestarts: 1 });
    await end();
    expect(() => handler.closed(null)).toThrow(Exit);
    expect(exits).toEqual([0]);
  });

  test('has no lease with its launcher between two orders', async () => {
    vi.useFakeTimers({
      toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance', 'hrtime'],
    });
    const { give, end, stderr } = await ordered({ maxRestarts: 1 });
    await end();
    vi.advanceTimersByTime(600_000);
    expect(stderr()).toBe('');
    give(1);
    vi.advanceTimersByTime(600_000);
    expect(stderr()).toContain('the launcher was silent for');
  });
});

describe('an agent that stays for another job', () => {
  test('follows its order, and exits when the launcher has gone', async () => {
    const { handler, give, end, played, exits, closes } = await ordered({ stays: true });
    await end();
    give();
    expect([played.length, closes()]).toEqual([2, 0]);
    await end();
    expect(() => handler.closed(null)).toThrow(Exit);
    expect(exits).toEqual([0]);
  });

  test('exits when the launcher is silent for longer than the lease between two jobs', async () => {
    vi.useFakeTimers({
      toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance', 'hrtime'],
    });
    const { end, exits } = await ordered({ stays: true });
    await end();
    expect(() => vi.advanceTimersByTime(600_000)).toThrow(Exit);
    expect(exits).toEqual([0]);
  });
});

test('an agent whose native part cannot be had refuses and closes the connection', async () => {
  const refusing = await served(({ onEnded }) => {
    onEnded();
    return null;
  });
  const usual = scriptedJob(['a'], 2).agents[0]?.order;
  refusing.handler.frame(
    makeFrame(FrameKind.order, { payload: encodeJson({ ...usual, version: installedVersion() }) }),
  );
  await vi.waitFor(() => expect(refusing.closes()).toBe(1));
});
