/** The agent between its launcher and its guardian, in all its states. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ByteWriter } from '../../control/messages/bytes.ts';
import { makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import { encodeLease, encodeSignal } from '../../control/messages/payload.ts';
import { ProtocolError } from '../../control/messages/protocol-error.ts';
import { playedAgent } from '../rig/played-agent.ts';

const SIGTERM = 15;
const SIGUSR1 = 10;
const SUSPENDED = 1;

const played: ReturnType<typeof playedAgent>[] = [];
const play = (...options: Parameters<typeof playedAgent>) => {
  const one = playedAgent(...options);
  played.push(one);
  return one;
};
beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] }));
afterEach(() => {
  for (const one of played.splice(0)) one.remove();
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const spawned = (pid: number): Uint8Array => new ByteWriter().u32(pid).u64(1_000_000).finish();
const exited = (status: number): Uint8Array => new ByteWriter().i32(status).u64(5_000_000n).finish();
const signal = (number: number) => makeFrame(FrameKind.signal, { payload: encodeSignal(number) });
const kindsOf = (frames: readonly { kind: FrameKind }[]): FrameKind[] => frames.map(({ kind }) => kind);

describe('an agent without ranks', () => {
  test('says hello and starts a guardian, whose lease is that of the launcher only on other hosts', () => {
    const remote = play();
    expect(remote.kinds()[0]).toBe(FrameKind.hello);
    expect(remote.guardian[0]).toMatch(/^start for agent, lease [1-9]\d*$/);
    expect(play({ local: true }).guardian).toEqual(['start for launcher, lease 0']);
    expect([remote.agent.hasStarted, remote.agent.hasEnded]).toEqual([false, false]);
  });

  test('ends when the signal is one that ends ranks, and passes on every other', async () => {
    const { agent, toGuardian } = play();
    agent.receive(signal(SIGUSR1));
    await settled();
    expect(kindsOf(toGuardian)).toEqual([FrameKind.signal]);
    agent.receive(signal(SIGTERM));
    await settled();
    expect(kindsOf(toGuardian)).toEqual([FrameKind.signal, FrameKind.end]);
  });

  test('may be followed by another order where restarts are left, but not in the launcher', () => {
    const stays = [play({ maxRestarts: 1 }), play(), play({ maxRestarts: 1, local: true })];
    expect(stays.map(({ agent }) => agent.staysAfter)).toEqual([true, false, false]);
  });

  test('may be followed by another job where its order says so, but not in the launcher', () => {
    const awaiting = [play({ stays: true }), play({ stays: true, local: true }), play({ maxRestarts: 1 })];
    expect(awaiting.map(({ agent }) => agent.awaitsJobs)).toEqual([true, false, false]);
  });

  test('refuses an interface that it does not have, where other hosts need it', () => {
    const interfaces = 'nosuch0';
    const refused = [play({ interfaces, hostCount: 2 }), play({ interfaces }), play({ hostCount: 2 })];
    expect(refused.map(({ reports }) => reports('refusal').length)).toEqual([1, 0, 0]);
    expect(refused[0]?.reports('refusal')).toEqual([
      expect.objectContaining({ message: expect.stringContaining('nosuch0') }),
    ]);
  });

  test('starts no ranks where the start brings the refusal', async () => {
    const refused = play({ interfaces: 'nosuch0', hostCount: 2, late: true });
    expect(refused.reports('refusal')).toEqual([]);
    refused.start();
    await settled();
    expect([refused.reports('refusal').length, kindsOf(refused.toGuardian)]).toEqual([1, []]);
    const alone = play({ interfaces: 'nosuch0', late: true });
    alone.start();
    await settled();
    expect([alone.reports('refusal').length, kindsOf(alone.toGuardian)]).toEqual([0, [FrameKind.spawn]]);
  });

  test('refuses a frame that no launcher sends', () => {
    const { agent } = play();
    expect(() => agent.receive(makeFrame(FrameKind.hello))).toThrow(ProtocolError);
    expect(() => agent.receive(makeFrame(FrameKind.hello))).toThrow(
      `a frame of kind ${FrameKind.hello} came from the launcher`,
    );
  });
});

describe('an agent with ranks', () => {
  test('starts them once, and passes frames on in both directions', async () => {
    const { agent, start, toGuardian, fromGuardian, bootstrap, kinds } = play();
    start();
    start();
    agent.receive(makeFrame(FrameKind.stdin));
    agent.receive(makeFrame(FrameKind.outputCredit));
    agent.receive(makeFrame(FrameKind.completed));
    agent.receive(signal(SIGTERM));
    await settled();
    expect(kindsOf(toGuardian)).toEqual([FrameKind.spawn, FrameKind.stdin, FrameKind.outputCredit, FrameKind.signal]);
    const before = kinds().length;
    fromGuardian(FrameKind.spawned, 1, spawned(77));
    fromGuardian(FrameKind.output, 1);
    fromGuardian(FrameKind.exited, 1, exited(3 << 8));
    expect(kinds().slice(before)).toEqual([FrameKind.spawned, FrameKind.output, FrameKind.exited]);
    expect(bootstrap).toEqual([`frame ${FrameKind.completed}`, 'spawned 1 as 77', 'ended 1 with 3']);
    expect(agent.hasStarted).toBe(true);
  });

  test('a rank that SIGKILL has ended died for want of memory only where the kernel counts that', async () => {
    const { start, fromGuardian, reports } = play();
    start();
    await settled();
    fromGuardian(FrameKind.exited, 0, exited(9));
    fromGuardian(FrameKind.exited, 1, exited(137 << 8));
    expect(reports('out-of-memory')).toEqual([]);
  });

  test('reports what its guardian notices, and kills one that sends nonsense', () => {
    const { start, fromGuardian, reports, guardian } = play();
    start();
    fromGuardian(FrameKind.notice, 0, Buffer.from('a rank left files'));
    expect(reports('notice')).toContainEqual({ type: 'notice', message: 'a rank left files' });
    fromGuardian(FrameKind.hello);
    expect(guardian.at(-1)).toBe('killed');
  });

  test.each([
    [true, 0],
    [false, null],
  ])('suspends its guardian, and confirms that to the launcher (in the launcher: %s)', async (local, lease) => {
    const { agent, start, toGuardian, fromGuardian, sent } = play({ local });
    start();
    await settled();
    toGuardian.length = 0;
    agent.receive(makeFrame(FrameKind.suspend, { flags: 1 }));
    await settled();
    expect(kindsOf(toGuardian)).toEqual([FrameKind.lease, FrameKind.heartbeat]);
    expect(toGuardian[1]?.subject).toBe(SUSPENDED);
    const payload = Buffer.from(toGuardian[0]?.payload ?? []);
    expect(payload.equals(encodeLease(0))).toBe(lease === 0);
    fromGuardian(FrameKind.heartbeat, 7);
    expect(sent.at(-1)?.kind).not.toBe(FrameKind.suspend);
    fromGuardian(FrameKind.heartbeat, SUSPENDED);
    expect(sent.at(-1)).toMatchObject({ kind: FrameKind.suspend, flags: 1 });
    toGuardian.length = 0;
    agent.receive(makeFrame(FrameKind.suspend));
    await settled();
    expect(kindsOf(toGuardian)).toEqual([FrameKind.lease]);
    expect(Buffer.from(toGuardian[0]?.payload ?? []).equals(encodeLease(0))).toBe(false);
  });

  test('learns of every end before it says that no rank is left', async () => {
    const { agent, start, fromGuardian, release, kinds } = play({ holdsReports: true });
    start();
    agent.receive(makeFrame(FrameKind.end));
    fromGuardian(FrameKind.exited, 0, exited(0));
    fromGuardian(FrameKind.ended);
    await settled();
    expect(kinds()).not.toContain(FrameKind.ended);
    release();
    await settled();
    expect(kinds().slice(-2)).toEqual([FrameKind.exited, FrameKind.ended]);
  });
});

describe('the end of an agent', () => {
  test('asks the guardian once, and is over when the guardian is gone', async () => {
    const { agent, start, toGuardian, fromGuardian, guardianDies, guardian, bootstrap, ends } = play();
    start();
    agent.receive(makeFrame(FrameKind.end));
    agent.receive(makeFrame(FrameKind.end));
    await settled();
    expect(kindsOf(toGuardian)).toEqual([FrameKind.spawn, FrameKind.end]);
    fromGuardian(FrameKind.ended);
    await settled();
    expect([agent.hasEnded, ends(), bootstrap.at(-1), guardian.at(-1)]).toEqual([true, 0, 'closed', 'let go']);
    guardianDies(0);
    await settled();
    await settled();
    expect([ends(), guardian.at(-1)]).toEqual([1, 'released']);
    vi.advanceTimersByTime(10_000);
    expect(guardian).not.toContain('killed');
  });

  test('kills a guardian that was let go and does not leave within 2 s after the lease', async () => {
    const { agent, fromGuardian, guardian } = play();
    agent.receive(makeFrame(FrameKind.end));
    fromGuardian(FrameKind.ended);
    await settled();
    vi.advanceTimersByTime(5000 + 1999);
    expect(guardian).not.toContain('killed');
    vi.advanceTimersByTime(1);
    expect(guardian.at(-1)).toBe('killed');
  });

  test('lets go of the guardian when the launcher is gone, which ends the ranks', () => {
    const { agent, start, guardian } = play();
    start();
    agent.linkClosed();
    expect(guardian.at(-1)).toBe('let go');
    agent.receive(makeFrame(FrameKind.end));
    expect(agent.hasEnded).toBe(false);
  });

  test('reports a silent launcher, and gives no other reason afterwards', async () => {
    vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    const { agent, start, guardian, guardianDies, reports, ends } = play();
    start();
    agent.launcherSilent(6000);
    expect(reports('launcher-silent')).toEqual([{ type: 'launcher-silent', silentMs: 6000 }]);
    expect([agent.hasLostLauncher, guardian.at(-1)]).toEqual([true, 'let go']);
    guardianDies(9);
    await vi.waitFor(() => expect(ends()).toBe(1));
    expect(reports('guardian-died')).toEqual([]);
  });

  test('reports a guardian that died with ranks, and what was left of the job', async () => {
    const { agent, start, guardianDies, reports, ends, kinds } = play();
    start();
    guardianDies(9);
    await vi.waitFor(() => expect(ends()).toBe(1));
    expect(reports('guardian-died')).toEqual([
      { type: 'guardian-died', message: 'the guardian was killed by SIGKILL; no process of the job was left' },
    ]);
    expect([agent.hasEnded, kinds().at(-1)]).toEqual([true, FrameKind.ended]);
  });

  test('asks the launcher to end the job where the resource manager wants that', () => {
    const { agent, reports } = play();
    agent.askToEnd('SIGTERM');
    expect(reports('asked-to-end')).toEqual([{ type: 'asked-to-end', signal: 'SIGTERM' }]);
  });
});
