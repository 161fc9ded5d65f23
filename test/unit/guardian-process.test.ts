/** The agent's side of its guardian, on a native part that the test plays. */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import { Guardian, type GuardianOptions, removeByGuardian, startGuardian } from '../../worker/agent/guardian.ts';
import type { LocalServer, LocalServerEvent, Native } from '../../worker/engine/native.ts';

const root = mkdtempSync(join(tmpdir(), 'ncclrun-guardian-'));
afterAll(() => rmSync(root, { recursive: true }));
beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

const server: LocalServer = Object.create(null);
const options: GuardianOptions = { path: '/guardian', runtimeDirectory: '/run/x', leaseMs: 5000, endsAgent: true };

/** `fails`: no process can be started. */
function playedNative(fails = false) {
  const calls: string[] = [];
  const listeners: ((event: LocalServerEvent) => void)[] = [];
  const native: Native = Object.assign(Object.create(null), {
    childStart(words: readonly string[], onEvent: (event: LocalServerEvent) => void): LocalServer {
      calls.push(`start ${words.join(' ')}`);
      if (fails) throw new Error('no more processes');
      listeners.push(onEvent);
      return server;
    },
    localServerWrite: (_: LocalServer, __: number, bytes: Uint8Array) => void calls.push(`write ${bytes.length}`),
    localServerDisconnect: () => void calls.push('disconnect'),
    localServerClose: () => void calls.push('release'),
    childKill: (_: LocalServer, group: boolean) => void calls.push(group ? 'kill group' : 'kill'),
  });
  return { native, take: () => calls.splice(0), event: (one: LocalServerEvent) => listeners.at(-1)?.(one) };
}

const closed = (reason: string): LocalServerEvent => ({ type: 'closed', connection: 1, reason });
const died = (waitStatus: number | null): LocalServerEvent => ({
  type: 'died',
  connection: 1,
  waitStatus,
  stderr: '',
});
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function guarded(changes: Partial<GuardianOptions> = {}) {
  const played = playedNative();
  const events: string[] = [];
  const guardian = new Guardian(
    played.native,
    { ...options, ...changes },
    {
      frame: ({ kind }) => events.push(`frame ${kind}`),
      gone: (how) => events.push(how),
    },
  );
  return { ...played, events, guardian };
}

test.each([
  [true, 'start /guardian /run/x 5000 agent'],
  [false, 'start /guardian /run/x 5000 launcher'],
])('the guardian learns its directory, its lease and whom it ends (endsAgent %s)', (endsAgent, start) => {
  expect(guarded({ endsAgent }).take()).toEqual([start]);
});

test.each([
  [null, 'is gone'],
  [0, 'exited with status 0'],
  [3 << 8, 'exited with status 3'],
  [9, 'was killed by SIGKILL'],
])('the agent learns how the guardian ended (wait status %s)', async (waitStatus, how) => {
  const { event, events } = guarded();
  event({
    type: 'frame',
    connection: 1,
    kind: FrameKind.ended,
    flags: 0,
    subject: 0,
    request: 0,
    payload: new Uint8Array(0),
  });
  event(died(waitStatus));
  await settled();
  expect(events).toEqual([`frame ${FrameKind.ended}`, how]);
});

describe('a guardian whose connection has ended', () => {
  test.each([
    ['has half a second to die after a clean end', '', 500],
    ['is killed at once after an error', 'reset', 0],
  ])('%s', async (_, reason, ms) => {
    const { event, take } = guarded();
    take();
    event(closed(reason));
    if (ms > 0) {
      vi.advanceTimersByTime(ms - 1);
      expect(take()).toEqual([]);
    }
    vi.advanceTimersByTime(Math.min(ms, 1));
    expect(take()).toEqual(['kill group']);
  });

  test('is not killed once it is dead', async () => {
    const { event, take } = guarded();
    take();
    event(closed(''));
    event(died(0));
    await settled();
    expect(vi.getTimerCount()).toBe(0);
    expect(take()).toEqual([]);
  });
});

test('frames, the end, the kill and the release reach the guardian', async () => {
  const { guardian, take } = guarded();
  take();
  guardian.send(makeFrame(FrameKind.end));
  guardian.close();
  guardian.kill();
  guardian.release();
  expect(take()).toEqual([expect.stringMatching(/^write \d+$/), 'disconnect', 'kill group', 'release']);
});

describe('a guardian that cannot be started', () => {
  const handler = { frame: () => undefined, gone: () => undefined };

  test('leaves neither the directory nor the socket in it', () => {
    const runtimeDirectory = join(root, 'empty');
    mkdirSync(runtimeDirectory);
    const socket = join(runtimeDirectory, 'socket');
    writeFileSync(socket, '');
    const { native } = playedNative(true);
    expect(() => startGuardian(native, { ...options, runtimeDirectory }, socket, handler)).toThrow('no more processes');
    expect(existsSync(runtimeDirectory)).toBe(false);
  });

  test('leaves a directory alone that it should only remove', async () => {
    const runtimeDirectory = mkdtempSync(join(root, 'kept-'));
    const { native, take } = playedNative(true);
    await removeByGuardian(native, { ...options, runtimeDirectory });
    expect(take()).toHaveLength(1);
    expect(existsSync(runtimeDirectory)).toBe(true);
  });
});

describe('the removal of a directory', () => {
  test('starts no guardian where there is no directory', async () => {
    const { native, take } = playedNative();
    await removeByGuardian(native, { ...options, runtimeDirectory: join(root, 'nowhere') });
    expect(take()).toEqual([]);
  });

  test('ends with the guardian that does it', async () => {
    const runtimeDirectory = mkdtempSync(join(root, 'removed-'));
    const { native, take, event } = playedNative();
    const removed = removeByGuardian(native, { ...options, runtimeDirectory });
    expect(take()).toEqual([`start /guardian ${runtimeDirectory} 5000 agent`, 'disconnect']);
    event(died(0));
    await removed;
    expect(take()).toEqual(['release']);
  });
});
