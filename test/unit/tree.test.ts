/** Agents that start agents, on a clock of our own: who keeps the lease with whom, who is named, and what goes over the launcher's links. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ChildMessage, decodePassed } from '../../control/messages/child-agent.ts';
import { makeFrame } from '../../control/messages/codec.ts';
import { FrameKind, type Frame } from '../../control/messages/frame.ts';
import { isHeartbeat, notice, PlayedTree, suspension, terms } from '../rig/played-tree.ts';

/** With radix 2: h1 and h2 from the launcher, h3 and h5 through h1, h4 and h6 of h2, h7 of h3. */
const names = Array.from({ length: 7 }, (_, index) => `h${index + 1}`);
/** A lease is over at the first heartbeat after it; the last sign of life came up to one before. */
const MAX_SILENT_MS = terms.leaseMs + 2 * terms.heartbeatMs;

let tree: PlayedTree;
beforeEach(async () => {
  vi.useFakeTimers({
    toFake: ['setInterval', 'clearInterval', 'setTimeout', 'clearTimeout', 'setImmediate', 'hrtime', 'performance'],
  });
  tree = new PlayedTree(names, 2);
  await pass(terms.heartbeatMs);
  expect([...tree.agents.keys()].toSorted()).toEqual(names);
  tree.received.length = tree.sent.length = 0;
});
afterEach(() => vi.useRealTimers());

const pass = (milliseconds: number): Promise<unknown> => vi.advanceTimersByTimeAsync(milliseconds);
const silent = (): string[] => names.filter((name) => tree.hosts.get(name)?.silences.length);
const closed = (): string[] => names.filter((name) => tree.hosts.get(name)?.closed !== undefined);
/** Those whose agent knows that the launcher is gone. */
const leaving = (): string[] => names.filter((name) => tree.agents.get(name)?.launcherGoneAt !== null);
const passedOf = (frames: readonly Frame[]) =>
  frames.map(({ kind, flags, payload }) => {
    expect({ kind, flags }).toEqual({ kind: FrameKind.childAgent, flags: ChildMessage.passed });
    return decodePassed(payload);
  });

describe('leases', () => {
  test('an idle launcher exchanges one heartbeat per period with its direct hosts only', async () => {
    await pass(60 * terms.heartbeatMs);
    expect({ received: tree.received.length, sent: tree.sent.length }).toEqual({ received: 2 * 60, sent: 2 * 60 });
    expect([...tree.received, ...tree.sent].every(isHeartbeat)).toBe(true);
    expect({ silent: silent(), closed: closed(), leaving: leaving() }).toEqual({ silent: [], closed: [], leaving: [] });
  });

  test('a silent leaf is reported, and no other host', async () => {
    tree.cut.add('h7');
    await pass(terms.leaseMs);
    expect({ silent: silent(), leaving: leaving() }).toEqual({ silent: [], leaving: [] });
    await pass(MAX_SILENT_MS - terms.leaseMs);
    expect({ silent: silent(), closed: closed(), leaving: leaving() }).toEqual({
      silent: ['h7'],
      closed: ['h7'],
      leaving: ['h7'],
    });
    expect(tree.hosts.get('h7')?.silences[0]).toBeGreaterThan(terms.leaseMs);
    await pass(60 * terms.heartbeatMs);
    expect(closed()).toEqual(['h7']);
  });

  test('the loss of an inner host takes the hosts behind it, and only that host is reported', async () => {
    tree.cut.add('h3');
    await pass(MAX_SILENT_MS);
    expect({ silent: silent(), closed: closed(), leaving: leaving() }).toEqual({
      silent: ['h3'],
      closed: ['h3', 'h7'],
      leaving: ['h3', 'h7'],
    });
    expect(tree.hosts.get('h7')?.closed).toBe('it was reached through h3, which is gone');
  });

  test('the loss of a direct host takes the hosts behind it, and only that host is reported', async () => {
    tree.cut.add('h1');
    await pass(MAX_SILENT_MS);
    const below = ['h1', 'h3', 'h5', 'h7'];
    expect({ silent: silent(), closed: closed(), leaving: leaving() }).toEqual({
      silent: ['h1'],
      closed: below,
      leaving: below,
    });
  });

  test('all hosts give up a stopped launcher within a lease at every depth', async () => {
    tree.stopLauncher();
    await pass(terms.leaseMs - terms.heartbeatMs);
    expect(leaving()).toEqual([]);
    await pass(MAX_SILENT_MS - terms.leaseMs + terms.heartbeatMs);
    expect(leaving()).toEqual(names);
  });

  test('all hosts give up a stopped launcher even if they lose their links to each other', async () => {
    tree.stopLauncher();
    await pass(terms.leaseMs - terms.heartbeatMs);
    for (const name of ['h3', 'h4', 'h7']) tree.cut.add(name);
    await pass(MAX_SILENT_MS - terms.leaseMs + terms.heartbeatMs);
    expect(leaving()).toEqual(names);
  });

  test('no lease expires while the job is suspended', async () => {
    for (const { connection } of tree.hosts.values()) connection.send(suspension(true));
    await pass(terms.heartbeatMs);
    tree.stopLauncher();
    tree.cut.add('h7');
    await pass(60 * terms.heartbeatMs);
    tree.continueLauncher();
    tree.cut.clear();
    for (const { connection } of tree.hosts.values()) connection.send(suspension(false));
    await pass(terms.leaseMs);
    expect({ silent: silent(), closed: closed(), leaving: leaving() }).toEqual({ silent: [], closed: [], leaving: [] });
    tree.cut.add('h6');
    await pass(MAX_SILENT_MS);
    expect(silent()).toEqual(['h6']);
  });

  test('an agent without ranks still connects others, which are lost with it', async () => {
    tree.agents.get('h1')?.uplink.idle();
    await pass(60 * terms.heartbeatMs);
    expect({ silent: silent(), leaving: leaving() }).toEqual({ silent: [], leaving: [] });
    tree.cut.add('h1');
    await pass(MAX_SILENT_MS);
    expect(closed()).toEqual(['h1', 'h3', 'h5', 'h7']);
  });
});

describe('frames', () => {
  const rest = 10; // less than a heartbeat

  test('frames that agents send in one event-loop tick arrive together and in order', async () => {
    for (const name of ['h3', 'h5', 'h7'])
      for (const part of [1, 2]) tree.agents.get(name)?.link.send(notice(`${name} ${part}`));
    await pass(rest);
    expect(passedOf(tree.received).length).toBeLessThanOrEqual(2); // those of h7 are a tick later
    for (const name of ['h3', 'h5', 'h7'])
      expect(tree.hosts.get(name)?.heard.slice(-2)).toEqual([notice(`${name} 1`), notice(`${name} 2`)].map(content));
  });

  test('a frame for many hosts is sent once to each agent that forwards it', async () => {
    const frame = makeFrame(FrameKind.signal, { payload: new Uint8Array(1000) });
    for (const { connection } of tree.hosts.values()) connection.send(frame);
    await pass(rest);
    expect(tree.sent.filter(({ kind }) => kind === FrameKind.signal)).toHaveLength(2);
    const passed = passedOf(tree.sent.filter(({ kind }) => kind === FrameKind.childAgent)).flat();
    // h7 is told inside of what h3 is told next.
    expect(passed.map(({ children, frame: { kind } }) => ({ to: children.length, kind }))).toEqual([
      { to: 2, kind: FrameKind.signal },
      { to: 2, kind: FrameKind.signal },
      { to: 1, kind: FrameKind.childAgent },
    ]);
    for (const name of names)
      expect(tree.agents.get(name)?.heard.filter(({ kind }) => kind === FrameKind.signal)).toEqual(
        [frame].map(content),
      );
  });

  test('frames arrive before the end of their link', async () => {
    tree.hosts.get('h7')?.connection.send(notice('a word'));
    void tree.hosts.get('h7')?.connection.close(false);
    await pass(rest);
    expect(tree.agents.get('h7')?.heard.at(-1)).toEqual(content(notice('a word')));
    expect(leaving()).toEqual(['h7']);
  });
});

/** As it compares whether it was decoded or handed over. */
function content(frame: Frame): unknown {
  return { ...frame, payload: expect.toSatisfy((payload: Uint8Array) => Buffer.compare(payload, frame.payload) === 0) };
}
