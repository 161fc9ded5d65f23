/** Signals, suspension, lost hosts and spares of a job whose hosts the test plays, and the events about them. */
import { describe, expect, test, vi } from 'vitest';
import { FrameKind } from '../../control/messages/frame.ts';
import { decodeSignal } from '../../control/messages/payload.ts';
import { encodeJson } from '../../control/messages/codec.ts';
import type { JobEvent } from '../../launcher/model/event.ts';
import { scriptedJob, turn } from '../rig/scripted-host.ts';

const [INT, TERM, CONT, STOP, USR1, ONE] = [2, 15, 18, 19, 10, 0x100];

type Rig = ReturnType<typeof scriptedJob>;

const signals = ({ events }: Rig) =>
  events.flatMap((event) => (event.type === 'signal' ? [`${event.signal} ${event.forwarded}`] : []));
const notices = ({ events }: Rig) => events.flatMap((event) => (event.type === 'notice' ? [event.message] : []));
const failures = ({ events }: Rig) =>
  events.flatMap((event) => (event.type === 'failure' ? [`${event.failure.type} ${event.primary}`] : []));
const sent = ({ agents }: Rig, kind: FrameKind) =>
  agents.map((agent) => agent.sent.filter((frame) => frame.kind === kind));

async function running(names: readonly string[] = ['a', 'b'], perHost = 1): Promise<Rig> {
  const rig = scriptedJob(names, perHost);
  await rig.up();
  return rig;
}

describe('signals', () => {
  test('signals are forwarded while ranks are left, and the user learns what follows', async () => {
    const rig = await running(['a'], 2);
    rig.job.interrupt();
    rig.job.terminate('SIGTERM');
    rig.job.forward('SIGUSR1');
    rig.job.ignore('SIGUSR2');
    expect(signals(rig)).toEqual(['SIGINT true', 'SIGTERM true', 'SIGUSR1 true', 'SIGUSR2 false']);
    expect(notices(rig)).toEqual([
      'interrupted; the ranks got SIGINT. ^C again: SIGTERM, and SIGKILL 60 s later; a third time: leave at once',
      'got SIGTERM; the ranks got SIGTERM, SIGKILL follows in 60 s',
      'got SIGUSR2; it is not passed on (--forward-signals)',
    ]);
    expect(sent(rig, FrameKind.signal)[0]?.map(({ payload }) => decodeSignal(payload))).toEqual([
      INT,
      TERM,
      CONT,
      USR1,
    ]);
    rig.agents[0]?.exited(0, 0);
    rig.job.terminate('SIGINT');
    expect([signals(rig).at(-1), notices(rig).at(-1)]).toEqual([
      'SIGINT true',
      expect.stringMatching(/; \^C again: leave at once$/u),
    ]);
    rig.job.leave();
    expect(notices(rig).at(-1)).toBe('left at once; each host ends what is left of the job there');
  });

  test('nothing is forwarded and nothing is said without ranks', async () => {
    const rig = scriptedJob(['a'], 1);
    rig.job.forward('SIGUSR1');
    rig.job.interrupt();
    rig.job.terminate('SIGHUP');
    rig.job.leave();
    expect([signals(rig), notices(rig)]).toEqual([['SIGUSR1 false', 'SIGINT false', 'SIGHUP false'], []]);
    const suspended = scriptedJob(['a'], 1);
    await suspended.job.suspend(true);
    suspended.job.resume(true);
    expect(signals(suspended)).toEqual(['SIGTSTP false', 'SIGCONT false']);
  });

  test.each([
    [true, [STOP, CONT], ['SIGTSTP true', 'SIGCONT true']],
    [false, [], ['SIGTSTP false', 'SIGCONT false']],
  ])('^Z suspends the hosts, and the ranks too: %s', async (ranks, expected, events) => {
    const rig = await running();
    let suspended = false;
    const done = rig.job.suspend(ranks).then(() => (suspended = true));
    rig.agents[0]?.say(FrameKind.suspend);
    await turn();
    expect(suspended).toBe(false);
    rig.agents[1]?.say(FrameKind.suspend);
    await done;
    rig.job.resume(ranks);
    expect(sent(rig, FrameKind.suspend).map((frames) => frames.map(({ flags }) => flags))).toEqual([
      [1, 0],
      [1, 0],
    ]);
    expect(sent(rig, FrameKind.signal)[0]?.map(({ payload }) => decodeSignal(payload))).toEqual(expected);
    expect(signals(rig)).toEqual(events);
  });

  test('a host that is lost or ended delays no suspension', async () => {
    const rig = await running();
    const done = rig.job.suspend(true);
    rig.agents[0]?.say(FrameKind.suspend);
    rig.agents[1]?.lost('reset');
    await done;
  });

  test('the resource manager ends a job that runs, and one that ends already it does not', async () => {
    const rig = await running();
    const ask = () => rig.agents[0]?.say(FrameKind.failure, 0, encodeJson({ type: 'asked-to-end', signal: 'SIGTERM' }));
    ask();
    ask();
    rig.agents[1]?.say(FrameKind.failure, 0, encodeJson({ type: 'asked-to-end', signal: 'SIGTERM' }));
    expect(signals(rig)).toEqual(['SIGTERM true']);
  });
});

describe('who keeps a job from running', () => {
  test('hosts that connect and ranks that start are late, and nobody once the job runs', async () => {
    const { job, agents, spawn } = scriptedJob(['a', 'b'], 1);
    expect(job.late()).toEqual(['a (connect)', 'b (connect)']);
    agents[0]?.hello();
    expect(job.late()).toEqual(['b (connect)']);
    agents[1]?.hello();
    await job.allUp;
    spawn();
    agents[0]?.spawned(0);
    expect(job.late()).toEqual(['rank 1 on b (spawn)']);
    agents[1]?.spawned(1);
    expect(job.late()).toEqual([]);
  });

  test('a host is reached when its agent starts or has said hello', () => {
    const { job, agents } = scriptedJob(['a', 'b'], 1);
    expect(job.hosts.map(({ isReached }) => isReached)).toEqual([false, false]);
    agents[0]?.step('anything');
    expect(job.hosts.map(({ isReached }) => isReached)).toEqual([false, false]);
    agents[1]?.hello();
    expect(job.hosts.map(({ isReached }) => isReached)).toEqual([false, true]);
  });
});

describe('hosts', () => {
  test('a clock is ahead by what a hello says', () => {
    const { job, agents } = scriptedJob(['a', 'b'], 1);
    expect(job.hosts.map(({ clockAheadMs }) => clockAheadMs)).toEqual([0, 0]);
    agents[0]?.hello({ time: Date.now() + 10_000 });
    const [ahead = 0, none] = job.hosts.map(({ clockAheadMs }) => clockAheadMs);
    expect(Math.round(ahead / 1000)).toBe(10);
    expect([none, job.hosts[0]?.preflight?.name, job.hosts[1]?.preflight]).toEqual([0, 'a', null]);
  });

  test('a host is asked only between its hello and its start, and answers or is lost', async () => {
    const { job, agents, spawn } = scriptedJob(['a', 'b'], 1);
    const [a] = job.hosts;
    expect(await a?.ask({ type: 'listen' })).toBeNull();
    for (const agent of agents) agent.hello();
    const answers = job.hosts.map((host) => host.ask({ type: 'listen' }));
    agents[0]?.say(FrameKind.failure, 0, encodeJson({ type: 'listening', port: 7 }));
    agents[1]?.lost('reset');
    expect(await Promise.all(answers)).toEqual([{ type: 'listening', port: 7 }, null]);
    spawn();
    expect(await a?.ask({ type: 'listen' })).toBeNull();
  });

  test.each<[string, (rig: Rig) => void, RegExp]>([
    ['says that nobody asked to end', ({ agents }) => agents[0]?.ended(), /nobody asked for/u],
    ['says hello twice', ({ agents }) => agents[0]?.hello(), /a second hello/u],
    ['speaks of a rank elsewhere', ({ agents }) => agents[0]?.exited(1, 0), /for rank 1, which does not run there/u],
    [
      'speaks of a rank that is not there',
      ({ agents }) => agents[0]?.exited(9, 0),
      /for rank 9, which does not run there/u,
    ],
    ['starts a rank twice', ({ agents }) => agents[0]?.spawned(0), /for rank 0, which is running/u],
    [
      'reports the end of a rank elsewhere',
      ({ agents }) => agents[0]?.say(FrameKind.failure, 0, encodeJson({ type: 'out-of-memory', rank: 1 })),
      /a report of rank 1, which does not run there/u,
    ],
    ['sends a frame of a kind that it may not', ({ agents }) => agents[0]?.say(FrameKind.start), /a frame of kind /u],
  ])('a host that %s is cut off', async (_what, say, detail) => {
    const rig = await running();
    say(rig);
    expect(rig.job.hosts.map(({ state }) => state.name)).toEqual(['lost', 'running']);
    const [failure] = rig.job.hosts.flatMap(({ state }) => (state.name === 'lost' ? [state.failure] : []));
    expect(failure).toMatchObject({ type: 'host-lost', cause: 'protocol', detail: expect.stringMatching(detail) });
    expect(rig.agents[0]?.closed).toBe(true);
  });

  test('reports of its ranks, GPUs and tuning become events', async () => {
    const rig = await running(['a'], 1);
    const report = (value: object) => rig.agents[0]?.say(FrameKind.failure, 0, encodeJson(value));
    report({ type: 'notice', message: 'm' });
    report({ type: 'tuning', ranks: 2, file: 'f', key: 'k', measured: true });
    rig.agents[0]?.step('ssh');
    const [event] = rig.events.filter(({ type }) => type === 'tuning');
    expect(event).toMatchObject({ host: 'a', ranks: 2, file: 'f', measured: true });
    expect(notices(rig)).toEqual(['a: m']);
    expect(rig.events.filter(({ type }) => type === 'host-step')).toMatchObject([{ host: 'a', step: 'ssh' }]);
  });
});

describe('the end', () => {
  test('failures beside the primary one are reported after it, and ranks that were ended are none', async () => {
    const rig = await running(['a', 'b', 'c'], 1);
    rig.agents[0]?.exited(0, ONE);
    await vi.waitFor(() => expect(failures(rig)).toEqual(['rank-exit true']));
    rig.agents[1]?.lost('reset');
    rig.agents[2]?.exited(2, TERM);
    for (const agent of [rig.agents[0], rig.agents[2]]) agent?.ended();
    await rig.result();
    expect(failures(rig)).toEqual(['rank-exit true', 'host-lost false']);
  });

  test('the ranks of a host that ends without their exits are lost', async () => {
    const rig = await running();
    rig.job.terminate('SIGTERM');
    rig.agents[0]?.exited(0, TERM);
    expect(rig.job.state.name).toBe('stopping');
    rig.agents[1]?.lost('reset');
    expect(rig.job.state.name).toBe('teardown');
    rig.agents[0]?.ended();
    const { ranks, exitCode } = await rig.result();
    expect([exitCode, ranks[1]?.exitCode]).toEqual([143, null]);
  });

  test('a job is over only when all hosts are, whichever is first', async () => {
    const rig = await running();
    for (const rank of [0, 1]) rig.agents[rank]?.exited(rank, 0);
    rig.agents[0]?.ended();
    await turn();
    expect(rig.job.state.name).toBe('teardown');
    rig.agents[1]?.ended();
    await rig.result();
    expect(rig.job.state.name).toBe('over');
    expect(rig.events.filter((event: JobEvent) => event.type === 'host-ended')).toHaveLength(2);
  });

  test('a host that is lost in the tick of its hello loses its ranks', async () => {
    const rig = scriptedJob(['a', 'b'], 1);
    for (const agent of rig.agents) agent.hello();
    rig.agents[1]?.lost('reset');
    rig.spawn();
    rig.agents[0]?.spawned(0);
    await turn();
    rig.agents[0]?.exited(0, TERM);
    rig.agents[0]?.ended();
    expect(await rig.result()).toMatchObject({ exitCode: 125, reason: 'host-lost' });
  });
});
