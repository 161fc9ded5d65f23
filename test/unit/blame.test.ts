/** Whom the launcher blames where news of different hosts overtake each other: the policy, the job's patience, what the rendezvous knows. */
import { describe, expect, test, vi } from 'vitest';
import { makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import type { Key } from '../../control/messages/key.ts';
import { encodeLeft } from '../../control/messages/rendezvous-codec.ts';
import { ENDED_CLEANLY, LeftHow } from '../../control/messages/rendezvous.ts';
import type { Failure, RankMissingFailure } from '../../launcher/model/failure.ts';
import { type Awaited, FailurePolicy } from '../../launcher/job/failure-policy.ts';
import type { Job } from '../../launcher/job/job.ts';
import { entry, merged, newKey, testHub } from '../rig/rendezvous.ts';
import { scriptedJob, turn } from '../rig/scripted-host.ts';

const exitOf = (rank: number, exitCode = 1, outOfMemory = false): Failure => ({
  type: 'rank-exit',
  host: 'h',
  rank,
  pid: 1,
  exitCode,
  outOfMemory,
  stderrTail: [],
});
const gone = (rank: number): RankMissingFailure => ({
  type: 'rank-missing',
  host: 'h',
  rank,
  message: 'm',
  stderrTail: [],
});
const diedOf = (rank: number, signal: NodeJS.Signals): Failure => ({
  type: 'rank-signal',
  host: 'h',
  rank,
  pid: 1,
  signal,
  outOfMemory: false,
  stderrTail: [],
});
const lostHost: Failure = { type: 'host-lost', host: 'h', cause: 'silent', silentMs: 1, detail: '' };
const [INT, TERM, CONT, SEGV] = [2, 15, 18, 11];

/** Failures in the order in which they came, a millisecond between them. */
function policyOf(suspects: Readonly<Record<number, number>>, ...failures: readonly Failure[]): FailurePolicy {
  const policy = new FailurePolicy();
  for (const [rank, other] of Object.entries(suspects)) policy.suspect(Number(rank), other);
  for (const [time, failure] of failures.entries()) policy.record(failure, time);
  return policy;
}

/** What it waits for while all ranks live but those that are said to have ended. */
const awaited = (policy: FailurePolicy, ...ended: readonly number[]): Awaited | null =>
  policy.awaits({ isRankOver: (rank) => ended.includes(rank), left: 1 });

describe('the failure policy', () => {
  test('the policy waits for news about a rank that the earliest failed rank suspects', () => {
    expect(awaited(policyOf({ 1: 0 }, exitOf(1)))).toBe('news');
    expect(awaited(policyOf({ 1: 0, 2: 1 }, exitOf(2), exitOf(1)))).toBe('news');
    expect(policyOf({ 1: 0 }, exitOf(1)).decide()).toEqual(exitOf(1));
  });

  test('the policy does not wait for news after an independent failure, without a failure or after its decision', () => {
    expect(awaited(policyOf({ 1: 0 }, diedOf(2, 'SIGSEGV'), exitOf(1)))).toBeNull();
    expect(awaited(policyOf({ 1: 0 }))).toBeNull();
    const decided = policyOf({ 1: 0 }, exitOf(1));
    decided.decide();
    expect(awaited(decided)).toBeNull();
  });

  test.each<[string, FailurePolicy, Failure]>([
    ['the lost rank', policyOf({ 1: 0 }, exitOf(1), exitOf(0)), exitOf(0)],
    ['the end of a chain', policyOf({ 3: 2, 2: 1 }, exitOf(3), exitOf(2), exitOf(1)), exitOf(1)],
    ['the earliest of two ranks that lost each other', policyOf({ 1: 0, 0: 1 }, exitOf(1), exitOf(0)), exitOf(1)],
    ['the lost host', policyOf({ 1: 0 }, exitOf(1), lostHost), lostHost],
    ["the rank's own exit rather than its absence", policyOf({ 1: 0 }, exitOf(1), gone(0), exitOf(0)), exitOf(0)],
    ['a rank that others waited for', policyOf({}, exitOf(1), gone(0), exitOf(0)), gone(0)],
    [
      'the rank that the missing rank had lost',
      policyOf({ 0: 2 }, exitOf(1), gone(0), exitOf(0), exitOf(2)),
      exitOf(2),
    ],
    [
      'that rank if its failure is the earliest',
      policyOf({ 0: 2 }, exitOf(2), exitOf(1), gone(0), exitOf(0)),
      exitOf(2),
    ],
  ])('the policy blames %s', (_, policy, cause) => {
    expect(awaited(policy, 0)).toBeNull();
    expect(policy.decide()).toEqual(cause);
    expect(policy.failures[0]).toEqual(cause);
  });

  test('the policy blames a departed rank only if others failed because of it', () => {
    const policy = policyOf({ 1: 0 }, exitOf(1));
    policy.departed(gone(0));
    expect(awaited(policy, 0)).toBeNull();
    expect(policy.decide()).toEqual(gone(0));
    expect(policy.failures).toEqual([gone(0), exitOf(1)]);
    const coped = policyOf({}, exitOf(1));
    coped.departed(gone(0));
    expect(coped.decide()).toEqual(exitOf(1));
  });

  test('the policy waits for the exit of a blamed rank that lives and for news about its suspect', () => {
    const left = policyOf({ 1: 0 }, exitOf(1));
    left.departed(gone(0));
    const lacked = policyOf({}, exitOf(1), gone(0));
    for (const policy of [left, lacked]) {
      expect(awaited(policy)).toBe('end');
      policy.suspect(0, 2);
      policy.record(exitOf(0), 10);
      expect(awaited(policy, 0)).toBe('news');
    }
    expect(left.decide()).toEqual(exitOf(1));
    expect(lacked.decide()).toEqual(gone(0));
  });

  test.each<[string, readonly Failure[], Failure]>([
    ['a rank that was killed', [exitOf(0), diedOf(1, 'SIGKILL')], diedOf(1, 'SIGKILL')],
    ['the first of two that crashed', [exitOf(0), diedOf(2, 'SIGSEGV'), diedOf(1, 'SIGBUS')], diedOf(2, 'SIGSEGV')],
    ['a rank whose shell says that it was killed', [exitOf(0), exitOf(1, 137)], exitOf(1, 137)],
    ['a rank that was killed for want of memory', [exitOf(0), exitOf(1, 1, true)], exitOf(1, 1, true)],
    ['a host that was lost', [exitOf(0), lostHost], lostHost],
    ['an exit rather than an abort that followed', [exitOf(0), diedOf(1, 'SIGABRT')], exitOf(0)],
    ['an exit rather than SIGTERM that followed', [exitOf(0), exitOf(1, 143)], exitOf(0)],
    ['an abort rather than a crash that followed', [diedOf(0, 'SIGABRT'), diedOf(1, 'SIGSEGV')], diedOf(0, 'SIGABRT')],
  ])('the policy blames %s', (_, failures, cause) => {
    expect(policyOf({}, ...failures).decide()).toEqual(cause);
  });

  test('the policy waits for a crash behind the exit of a rank while others run', () => {
    expect(awaited(policyOf({}, exitOf(0)))).toBe('crash');
    expect(policyOf({}, exitOf(0)).awaits({ isRankOver: () => true, left: 0 })).toBeNull();
    for (const crash of [diedOf(1, 'SIGKILL'), lostHost]) expect(awaited(policyOf({}, exitOf(0), crash))).toBeNull();
    expect(awaited(policyOf({}, diedOf(1, 'SIGSEGV')))).toBeNull();
  });

  test('an exit that others survived precedes a crash that followed', () => {
    const policy = new FailurePolicy();
    policy.survive(exitOf(1), 1);
    policy.survive(diedOf(2, 'SIGSEGV'), 2);
    policy.recall();
    expect(awaited(policy)).toBeNull();
    expect(policy.decide()).toEqual(exitOf(1));
  });

  test('the policy asks what a rank that crashed had lost', () => {
    expect(policyOf({ 1: 2 }, exitOf(0), diedOf(1, 'SIGSEGV'), exitOf(2)).decide()).toEqual(exitOf(2));
    expect(awaited(policyOf({ 1: 2 }, exitOf(0), diedOf(1, 'SIGSEGV')))).toBe('news');
  });

  test('the policy does not wait after a failure that ends the job anyway', () => {
    expect(awaited(policyOf({ 1: 0 }, exitOf(1), { type: 'timeout', seconds: 1 }))).toBeNull();
  });
});

describe('the job', () => {
  test("the job waits for the other host's news and then blames its rank", async () => {
    const { job, agents, up, result } = scriptedJob(['a', 'b'], 1);
    await up();
    job.failures.suspect(1, 0);
    agents[1]?.exited(1, 0x100);
    await turn();
    expect(agents[0]?.asked).toEqual([]);
    agents[0]?.exited(0, SEGV, 50);
    await turn();
    for (const agent of agents) agent.ended();
    expect(await result()).toMatchObject({ exitCode: 139, failures: [{ type: 'rank-signal', rank: 0 }, { rank: 1 }] });
  });

  test('the job ends the other ranks once the exit of a departed rank explains the failure', async () => {
    const { job, agents, up, result } = scriptedJob(['a', 'b', 'c'], 1);
    await up();
    job.failures.suspect(1, 0);
    agents[1]?.exited(1, 0x100);
    await turn();
    job.failures.departed(0, 'left');
    await turn();
    expect(agents[2]?.asked).toEqual([]);
    agents[0]?.exited(0, 0);
    await turn();
    expect(agents[2]?.asked).toEqual([TERM, CONT]);
    agents[2]?.exited(2, TERM);
    for (const agent of agents) agent.ended();
    expect(await result()).toMatchObject({
      exitCode: 125,
      failures: [{ type: 'rank-missing', rank: 0 }, { rank: 1 }],
    });
  });

  const blames: [string, (job: Job) => void][] = [
    [
      'lost',
      (job) => {
        job.failures.suspect(1, 0);
        job.failures.departed(0, 'aborted');
      },
    ],
    ['waited for', (job) => job.failures.missing(0, 'aborted')],
  ];

  test.each(blames)('the job exits with the exit status of an aborted rank that another rank %s', async (_, blame) => {
    const { job, agents, up, result } = scriptedJob(['a', 'b'], 1);
    await up();
    blame(job);
    agents[1]?.exited(1, 0x100);
    await turn();
    expect(agents[0]?.asked).toEqual([]);
    agents[0]?.exited(0, 0x700, 50);
    await turn();
    for (const agent of agents) agent.ended();
    const { exitCode, failures } = await result();
    expect({ exitCode, first: failures[0] }).toMatchObject({ exitCode: 7, first: { rank: 0 } });
  });

  test.each(blames)(
    'the job blames the rank that an aborted rank had lost, when another rank %s the aborted one',
    async (_, blame) => {
      const { job, agents, up, result } = scriptedJob(['a', 'b', 'c'], 1);
      await up();
      blame(job);
      agents[1]?.exited(1, 0x100);
      await turn();
      job.failures.suspect(0, 2);
      agents[0]?.exited(0, 0x700, 50);
      await turn();
      expect(agents[2]?.asked).toEqual([]);
      agents[2]?.exited(2, SEGV, 60);
      await turn();
      for (const agent of agents) agent.ended();
      const { exitCode, failures } = await result();
      expect({ exitCode, first: failures[0] }).toMatchObject({
        exitCode: 139,
        first: { type: 'rank-signal', rank: 2 },
      });
    },
  );

  test.each(blames)(
    'the job ends, after a short wait, a living aborted rank that another rank %s',
    async (_, blame) => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
      try {
        const { job, agents, up, result } = scriptedJob(['a', 'b'], 1);
        await up();
        blame(job);
        agents[1]?.exited(1, 0x100);
        await turn();
        vi.advanceTimersByTime(250);
        expect(agents[0]?.asked).toEqual([]);
        vi.advanceTimersByTime(100);
        expect(agents[0]?.asked).toEqual([TERM, CONT]);
        agents[0]?.exited(0, TERM);
        for (const agent of agents) agent.ended();
        expect(await result()).toMatchObject({
          exitCode: 125,
          failures: [{ type: 'rank-missing', rank: 0 }, { rank: 1 }],
        });
      } finally {
        vi.useRealTimers();
      }
    },
  );

  test('the job waits for all consequences of one failure only as long as for one rank', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'hrtime'] });
    try {
      const { job, agents, up } = scriptedJob(['a', 'b', 'c'], 1);
      await up();
      job.failures.suspect(1, 0);
      agents[1]?.exited(1, 0x100);
      await turn();
      vi.advanceTimersByTime(6000);
      job.failures.departed(0, 'aborted');
      await turn();
      job.failures.suspect(0, 2);
      agents[0]?.exited(0, 0x700, 50);
      await turn();
      vi.advanceTimersByTime(900);
      expect(agents[2]?.asked).toEqual([]);
      vi.advanceTimersByTime(200);
      expect(agents[2]?.asked).toEqual([TERM, CONT]);
      agents[2]?.exited(2, TERM);
      for (const agent of agents) agent.ended();
      await job.over;
    } finally {
      vi.useRealTimers();
    }
  });

  test('the job ends in bounded time when the lost rank lives', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const { job, agents, up } = scriptedJob(['a', 'b'], 1);
      await up();
      job.failures.suspect(1, 0);
      agents[1]?.exited(1, 0x300);
      await turn();
      expect(agents[0]?.asked).toEqual([]);
      vi.advanceTimersByTime(9000);
      expect(agents[0]?.asked).toEqual([TERM, CONT]);
      agents[0]?.exited(0, TERM);
      for (const agent of agents) agent.ended();
      await job.over;
    } finally {
      vi.useRealTimers();
    }
  });

  test('the job does not wait when no rank is left or after ^C', async () => {
    const alone = scriptedJob(['a', 'b'], 1);
    await alone.up();
    alone.job.failures.suspect(1, 0);
    alone.agents[1]?.exited(1, 0x300);
    alone.agents[0]?.exited(0, 0);
    await turn();
    for (const agent of alone.agents) agent.ended();
    expect(await alone.result()).toMatchObject({ exitCode: 3, failures: [{ rank: 1 }] });

    const interrupted = scriptedJob(['a', 'b'], 1);
    await interrupted.up();
    interrupted.job.failures.suspect(1, 0);
    interrupted.agents[1]?.exited(1, 0x300);
    await turn();
    interrupted.job.interrupt();
    expect(interrupted.agents[0]?.asked).toEqual([INT]);
    interrupted.agents[0]?.exited(0, INT);
    for (const agent of interrupted.agents) agent.ended();
    expect(await interrupted.result()).toMatchObject({ exitCode: 3, failures: [{ rank: 1 }] });
  });
});

/** A hub with one communicator of ranks 0 and 2 (its ranks 0 and 1), on two hosts; what it says of ranks of the job. */
function wiredHub() {
  const suspected: [number, number][] = [];
  const departed: [number, string][] = [];
  const key = newKey();
  const { hub } = testHub(2, {
    onSuspected: (rank, suspect) => void suspected.push([rank, suspect]),
    onDeparted: (rank, message) => void departed.push([rank, message]),
  });
  hub.receive(0, merged(key, 2, [entry(0)]));
  hub.receive(1, merged(key, 2, [{ ...entry(1), jobRank: 2 }]));
  return { hub, key, suspected, departed };
}

const leftBy = (subject: number, key: Key, rank: number, how: LeftHow, flags = 0) =>
  makeFrame(FrameKind.left, { subject, flags, payload: encodeLeft({ key, rank, how, reason: 'it went' }) });

describe('the rendezvous', () => {
  test('the hub reports the suspicion of a rank even after the communicator broke', () => {
    const { hub, key, suspected } = wiredHub();
    hub.receive(0, leftBy(0, key, 1, LeftHow.suspected));
    hub.receive(1, leftBy(0xffff_ffff, key, 1, LeftHow.died));
    hub.receive(0, leftBy(0, key, 1, LeftHow.suspected));
    hub.receive(0, leftBy(0, newKey(), 1, LeftHow.suspected));
    hub.receive(0, leftBy(0, key, 7, LeftHow.suspected));
    hub.receive(0, leftBy(99, key, 1, LeftHow.suspected));
    expect(suspected).toEqual([
      [0, 2],
      [0, 2],
    ]);
    hub.close();
  });

  test('the hub reports which rank left others waiting', () => {
    const { hub, key, departed } = wiredHub();
    hub.receive(1, leftBy(2, key, 1, LeftHow.died, ENDED_CLEANLY));
    hub.receive(0, leftBy(0, key, 0, LeftHow.aborted));
    hub.receive(0, leftBy(0xffff_ffff, key, 0, LeftHow.died));
    expect(departed).toEqual([
      [2, 'it went; others waited for it'],
      [0, 'it went'],
    ]);
    hub.close();
  });

  test('the hub reports the missing ranks after the init timeout', () => {
    vi.useFakeTimers();
    try {
      const late: unknown[] = [];
      const { hub } = testHub(2, { initTimeoutMs: 3000, onTimedOut: (report) => void late.push(report) });
      hub.receive(0, merged(newKey(), 4, [entry(0), entry(1)]));
      vi.advanceTimersByTime(2900);
      expect(late).toEqual([]);
      vi.advanceTimersByTime(200);
      expect(late).toMatchObject([{ missing: ['rank 2 (node1)', 'rank 3 (node1)'] }]);
      hub.close();
    } finally {
      vi.useRealTimers();
    }
  });
});
