/** Jobs from their command line to their result, on hosts that the test plays: connections, placement, restarts and limits. */
import { describe, expect, test, vi } from 'vitest';
import { encodeJson } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import { failureOf } from '../../launcher/job/system-failure.ts';
import { turn } from '../rig/scripted-host.ts';
import { readings } from '../rig/positions.ts';
import { scriptedRun, startOf } from '../rig/scripted-run.ts';

const exit = (status: number) => status << 8;

describe('a job on two hosts', () => {
  test('its events follow from connection to end', async () => {
    const { result, events, agents, prepared } = scriptedRun('-n 3 -H a:2,b:2 prog x');
    const { ok, ranks, hosts, jobId } = await result;
    expect({ ok, jobId: jobId.length, prepared: prepared.length }).toEqual({ ok: true, jobId: 12, prepared: 1 });
    expect(ranks.map(({ host }) => host)).toEqual(['a', 'a', 'b']);
    expect(hosts.map(({ name, state }) => [name, state])).toEqual([
      ['a', 'ok'],
      ['b', 'ok'],
    ]);
    expect(events.map((event) => (event.type === 'phase' ? event.phase : event.type))).toEqual(
      (
        'job-started connect host-connecting host-connecting host-step host-up host-step hello host-up spawn rank-started ' +
        'rank-exited rank-started rank-exited rank-started run rank-exited teardown host-ended host-ended job-ended'
      ).split(' '),
    );
    expect(events[0]).toMatchObject({ ranks: 3, hosts: ['a', 'b'], programs: [['prog', 'x']] });
    expect(
      agents.map(({ order }) => [
        order.hostName,
        order.epoch,
        order.topology,
        order.hangAfterMs,
        order.preload,
        order.plansLocally,
      ]),
    ).toEqual([
      ['a', 0, false, 30_000, false, true],
      ['b', 0, false, 30_000, false, true],
    ]);
    expect(agents.map(({ order }) => order.outputCredit)).toEqual([4 * 1024 * 1024, 4 * 1024 * 1024]);
    expect(
      agents.map(({ order }) =>
        order.placement?.ranks.map(({ rank, interactive, visibleGpus }) => [rank, interactive, visibleGpus]),
      ),
    ).toEqual([
      [
        [0, false, null],
        [1, false, null],
      ],
      [[2, false, null]],
    ]);
  });

  test('each rank learns where the others meet, and by which address its host is reached', async () => {
    const addresses: Record<string, string[]> = { a: ['10.0.0.1'], b: ['10.0.0.2'] };
    const { result, agents } = scriptedRun('-n 2 -H a:1,b:1 prog', {
      hello: (host) => ({ addresses: addresses[host] ?? [], freePort: 77 }),
    });
    await result;
    expect(agents.map(startOf)).toEqual([
      { MASTER_ADDR: '10.0.0.1', MASTER_PORT: '77', NCCLRUN_HOST_ADDRESS: '10.0.0.1' },
      { MASTER_ADDR: '10.0.0.1', MASTER_PORT: '77', NCCLRUN_HOST_ADDRESS: '10.0.0.2' },
    ]);
    const alone = scriptedRun('-n 1 -H a:1 --engine ncclrun --on-hang ignore prog', {
      hello: () => ({ addresses: ['10.0.0.1'] }),
    });
    await alone.result;
    expect(alone.agents.map(startOf)).toEqual([{ MASTER_ADDR: '127.0.0.1', MASTER_PORT: '1' }]);
    expect(alone.agents[0]?.order).toMatchObject({ preload: true, hangAfterMs: 0 });
    expect(alone.agents[0]?.order.placement?.ranks[0]).toMatchObject({ interactive: true });
  });

  test('missing exports and hosts that differ are reported once, also if the job is restarted', async () => {
    const { result, notices, ofType, agents } = scriptedRun(
      '-n 2 -H a:1,b:1 --max-restarts 1 -x NCCLRUN_TEST_NOWHERE -x NCCLRUN_TEST_A,NCCLRUN_TEST_B prog',
      {
        hello: (host) => ({ preflight: { 'open files': host } }),
        started: (agent, rank) => agent.exited(rank, exit(rank)),
      },
    );
    expect(await result).toMatchObject({ ok: false, restarts: 1, exitCode: 1 });
    expect(notices()).toEqual([
      '-x NCCLRUN_TEST_NOWHERE: it is not set here, so the ranks do not get it',
      '-x NCCLRUN_TEST_A,NCCLRUN_TEST_B: it is not set here, so the ranks do not get it; several are -x NCCLRUN_TEST_A -x NCCLRUN_TEST_B',
      'hosts differ in open files: a: a; b: b',
    ]);
    expect(ofType('job-started')).toHaveLength(1);
    expect(ofType('restart').map(({ attempt, limit, hosts }) => [attempt, limit, hosts])).toEqual([[1, 1, ['a', 'b']]]);
    const orders = agents.flatMap(({ sent }) => sent.filter(({ kind }) => kind === FrameKind.order));
    expect(orders.map(({ payload }): unknown => JSON.parse(Buffer.from(payload).toString()))).toMatchObject([
      { epoch: 1 },
      { epoch: 1 },
    ]);
  });

  test('a single host differs from none', async () => {
    const { result, notices } = scriptedRun('-n 1 -H a:1 prog', { hello: () => ({ preflight: { x: 'y' } }) });
    await result;
    expect(notices()).toEqual([]);
  });
});

describe('hosts whose slots their agents report', () => {
  test('the ranks are mapped after the hellos, and placed at the start', async () => {
    const { result, agents, prepared, events } = scriptedRun('-H a,b prog', {
      hello: (host) => ({ cores: host === 'a' ? 2 : 1 }),
    });
    const { ranks } = await result;
    expect(ranks.map(({ host }) => host)).toEqual(['a', 'a', 'b']);
    expect([prepared.length, agents.map(({ order }) => order.placement)]).toEqual([1, [null, null]]);
    const types = events.map(({ type }) => type);
    expect(types.indexOf('job-started')).toBeGreaterThan(types.lastIndexOf('host-up'));
  });

  test('a restarted job is prepared once', async () => {
    let runs = 0;
    const { result, prepared } = scriptedRun('-H a --max-restarts 1 prog', {
      hello: () => ({ cores: 1 }),
      started: (agent, rank) => agent.exited(rank, exit(runs++ === 0 ? 1 : 0)),
    });
    expect(await result).toMatchObject({ ok: true, restarts: 1 });
    expect(prepared).toHaveLength(1);
  });

  test('more ranks than there are slots end the job before it starts', async () => {
    const { result, events } = scriptedRun('-n 9 -H a prog', { hello: () => ({ cores: 2 }) });
    expect(await result).toMatchObject({ ok: false, reason: 'allocation', exitCode: 2, ranks: [] });
    expect(events.some(({ type }) => type === 'rank-started')).toBe(false);
  });

  test('a reader of stdin that does not exist ends the job, at once where the number of ranks is known', async () => {
    const known = await scriptedRun('-n 1 -H a:1 --stdin 3 prog').result.then(() => null, failureOf);
    expect(known).toMatchObject({ type: 'usage', message: '--stdin names rank 3, and there is none' });
    const late = scriptedRun('-H a --stdin 3 prog', { hello: () => ({ cores: 2 }) });
    expect(await late.result).toMatchObject({
      exitCode: 2,
      failures: [{ message: '--stdin names rank 3, and there is none' }],
    });
  });

  test('the topology is asked for where ranks are bound', async () => {
    const { result, agents } = scriptedRun('-n 1 -H a:1 --bind-to core prog');
    await result;
    expect(agents[0]?.order).toMatchObject({ topology: true, placement: null });
  });

  test('--report-bindings reports each rank', async () => {
    const { result, ofType } = scriptedRun('-n 2 -H a:1,b:1 --report-bindings prog');
    await result;
    expect(ofType('binding').map(({ rank, host, bound }) => [rank, host, bound])).toEqual([
      [0, 'a', false],
      [1, 'b', false],
    ]);
    const quiet = scriptedRun('-n 1 -H a:1 prog');
    await quiet.result;
    expect(quiet.ofType('binding')).toEqual([]);
  });
});

const lostOnce = (words: string) => {
  let lost = false;
  return scriptedRun(words, {
    started(agent, rank) {
      if (agent.name !== 'a' || lost) return agent.exited(rank, 0);
      lost = true;
      return agent.lost('reset');
    },
  });
};

describe('spares', () => {
  test('a spare connects once the ranks run, and takes the place of a lost host', async () => {
    const { result, ofType, notices } = lostOnce('-n 2 -H a:1,b:1,c:1 --max-restarts 1 prog');
    const { ok, ranks } = await result;
    expect([ok, ranks.map(({ host }) => host)]).toEqual([true, ['c', 'b']]);
    expect(notices()).toEqual(['c takes the place of a']);
    expect(ofType('host-connecting').map(({ host }) => host)).toContain('c');
  });

  test('no spare connects without restarts', async () => {
    const { result, agents } = lostOnce('-n 2 -H a:1,b:1,c:1 prog');
    expect(await result).toMatchObject({ ok: false, reason: 'host-lost', restarts: 0 });
    expect(agents.map(({ name }) => name)).toEqual(['a', 'b']);
  });

  test('no more spares connect than restarts are left', async () => {
    const { result, agents } = scriptedRun('-n 1 -H a:1,b:1,c:1 --max-restarts 1 prog');
    await result;
    expect(agents.map(({ name }) => name)).toEqual(['a', 'b']);
  });
});

describe('limits of time', () => {
  test('hosts that are missing are named every 5 s', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const { result, ofType, agents } = scriptedRun('-n 2 -H a:1,b:1 prog', {
      hello: (host) => (host === 'a' ? {} : null),
    });
    while (ofType('host-up').length === 0) await turn();
    vi.advanceTimersByTime(4999);
    expect(ofType('waiting')).toEqual([]);
    vi.advanceTimersByTime(5001);
    agents[1]?.hello();
    await result;
    vi.advanceTimersByTime(20_000);
    vi.useRealTimers();
    expect(ofType('waiting').map(({ what, missing }) => [what, missing])).toEqual([
      ['1/2 hosts up', ['b']],
      ['1/2 hosts up', ['b']],
    ]);
  });

  test('--spawn-timeout names who is late, and --timeout ends a job that runs', async () => {
    const start = scriptedRun('-n 2 -H a:1,b:1 --spawn-timeout 0.05 prog', {
      hello: (host) => (host === 'a' ? {} : null),
    });
    expect(await start.result).toMatchObject({
      exitCode: 124,
      failures: [{ type: 'spawn-timeout', seconds: 0.05, late: ['b (connect)'] }],
    });
    const run = scriptedRun('-n 1 -H a:1 --max-restarts 3 --spawn-timeout 1 --timeout 1.2 --grace 0.01 prog', {
      started: () => undefined,
    });
    expect(await run.result).toMatchObject({
      exitCode: 124,
      restarts: 0,
      failures: [{ type: 'timeout', seconds: 1.2 }],
    });
  });
});

test('GPUs without free memory are reported, of the hosts that have GPUs', async () => {
  const { result, notices } = scriptedRun('-n 2 -H a:1,b:1 prog', {
    hello: (host) => ({ gpus: host === 'a' ? 1 : 0 }),
    started(agent, rank) {
      const gib = 2 ** 30;
      if (agent.name === 'a')
        agent.say(
          FrameKind.failure,
          0,
          encodeJson({ type: 'gpu-memory', gpus: [{ gpu: 0, total: 80 * gib, free: 10 * gib, holders: [] }] }),
        );
      agent.exited(rank, 0);
    },
  });
  await result;
  expect(notices()).toEqual([expect.stringMatching(/^GPUs lack free memory: a: 10 of 80 GiB on GPU 0/u)]);
});

describe('--on-failure shrink', () => {
  test('the others go on without a failed rank or a lost host, and the last failure ends the job', async () => {
    const { result, ofType } = scriptedRun('-n 4 -H a:2,b:1,c:1 --on-failure shrink prog', {
      started(agent, rank) {
        if (rank === 3) agent.lost('reset');
        else if (rank === 1) agent.exited(rank, exit(3));
        else setImmediate(() => agent.exited(rank, 0));
      },
    });
    expect(await result).toMatchObject({
      ok: true,
      exitCode: 0,
      failures: [{ rank: 1 }, { type: 'host-lost', host: 'c' }],
    });
    expect(ofType('shrink').map(({ failure, left }) => [failure.type, left])).toEqual([
      ['rank-exit', 3],
      ['host-lost', 2],
    ]);
    expect(ofType('failure')).toEqual([]);
    const last = scriptedRun('-n 2 -H a:2 --on-failure shrink prog', {
      started: (agent, rank) => agent.exited(rank, exit(rank + 1)),
    });
    expect(await last.result).toMatchObject({ ok: false, exitCode: 1 });
    expect(last.ofType('failure').map(({ primary }) => primary)).toEqual([true, false]);
  });
});

/** The only rank hangs in a barrier; with `report` it ends once the launcher has asked for the second time. */
const hanging = (onHang: string) =>
  scriptedRun(`-n 1 -H a:1 --on-hang ${onHang} --grace 0.01 prog`, {
    started: (agent) => agent.say(FrameKind.failure, 0, encodeJson({ type: 'stalled' })),
    whereIs(agent, { reading }) {
      const comm = { id: '0123456789abcdef', ranks: [0], all: { operation: 3, collective: 'barrier' } };
      const where = { ...readings({ comms: [comm] })[0].answers.get('h0'), reading };
      agent.say(FrameKind.failure, 0, encodeJson({ type: 'rankPositions', where }));
      if (onHang === 'report' && reading === 2) agent.exited(0, 0);
    },
  });

describe('a hang', () => {
  test.each(['report', 'abort'])(
    '--on-hang %s reports the hang, and ends the job only where that is asked for',
    async (onHang) => {
      const { result, ofType } = hanging(onHang);
      expect(await result).toMatchObject({ reason: onHang === 'abort' ? 'hang' : 'ok' });
      expect(ofType('hang')).toMatchObject([{ communicator: '0123456789abcdef', operation: 3, waiting: '0' }]);
      expect(ofType('hang')[0]?.verdict.kind).toBe('unknown');
    },
  );
});
