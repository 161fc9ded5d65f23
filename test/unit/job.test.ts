import { describe, expect, test, vi } from 'vitest';
import { FrameKind, OUTPUT_STDERR } from '../../control/messages/frame.ts';
import { decodeCredit } from '../../control/messages/payload.ts';
import { encodeJson } from '../../control/messages/codec.ts';
import { FailureError } from '../../launcher/model/failure-error.ts';
import { randomBytes, seededRandom } from '../rig/random.ts';
import { scriptedJob, turn } from '../rig/scripted-host.ts';

const [INT, KILL, TERM, CONT] = [2, 9, 15, 18];

describe('a successful job', () => {
  test('the job starts when all agents are up, and ends every host when all ranks have exited', async () => {
    const { job, agents, up, result, events } = scriptedJob(['a', 'b'], 2);
    await up();
    expect(job.state.name).toBe('running');
    agents[0]?.exited(0, 0);
    agents[0]?.exited(1, 0);
    expect(agents[0]?.asked).toEqual([]);
    agents[1]?.exited(3, 0);
    agents[1]?.exited(2, 0);
    expect(agents.map((agent) => agent.asked)).toEqual([['end'], ['end']]);
    for (const agent of agents) agent.ended();
    expect(await result()).toMatchObject({
      ok: true,
      reason: 'ok',
      exitCode: 0,
      failures: [],
      hosts: [
        { name: 'a', ranks: [0, 1], state: 'ok' },
        { name: 'b', ranks: [2, 3], state: 'ok' },
      ],
    });
    expect(events.filter((event) => event.type === 'phase').map((event) => event.phase)).toEqual(['run', 'teardown']);
  });

  test('the job ends when the reporter has taken all output, and grants credit for it', async () => {
    const { agents, up, result, setOutput, output } = scriptedJob(['a'], 1);
    const { promise: taken, resolve: take } = Promise.withResolvers<void>();
    setOutput(() => taken);
    await up();
    const [agent] = agents;
    agent?.say(FrameKind.output, 0, new Uint8Array(3_000_000));
    agent?.say(FrameKind.output, 0, Buffer.from('x\n'), OUTPUT_STDERR);
    agent?.exited(0, 0);
    agent?.ended();
    let over = false;
    const done = result().then(() => (over = true));
    await turn();
    expect(over).toBe(false);
    expect(agent?.sent.some((frame) => frame.kind === FrameKind.outputCredit)).toBe(false);
    take();
    await done;
    const grants = agent?.sent.filter((frame) => frame.kind === FrameKind.outputCredit) ?? [];
    expect(grants.map((frame) => decodeCredit(frame.payload))).toEqual([3_000_000]);
    expect(output.map(({ stream }) => stream)).toEqual(['stdout', 'stderr']);
  });
});

describe('a rank that fails', () => {
  test('the other ranks get SIGTERM, and their exits are not failures', async () => {
    const { agents, up, result, events } = scriptedJob(['a', 'b'], 2);
    await up();
    agents[1]?.exited(2, 0x300);
    await vi.waitFor(() =>
      expect(agents.map((agent) => agent.asked)).toEqual([
        [TERM, CONT],
        [TERM, CONT],
      ]),
    );
    agents[0]?.exited(0, TERM);
    agents[0]?.exited(1, 0x8f00);
    agents[1]?.exited(3, KILL);
    for (const agent of agents) agent.ended();
    const { exitCode, reason, failures, ranks, hosts } = await result();
    expect({ exitCode, reason }).toEqual({ exitCode: 3, reason: 'rank-exit' });
    expect(failures).toEqual([
      { type: 'rank-exit', host: 'b', rank: 2, pid: 102, exitCode: 3, outOfMemory: false, stderrTail: [] },
    ]);
    expect(ranks.map((rank) => rank.endedByUs)).toEqual([true, true, false, true]);
    expect(hosts.map((host) => host.state)).toEqual(['ok', 'failed']);
    expect(events.filter((event) => event.type === 'failure')).toMatchObject([{ primary: true }]);
  });

  test('the lowest of simultaneously failing ranks is the primary failure, and each is reported', async () => {
    const { agents, up, result, events } = scriptedJob(['a'], 4);
    await up();
    for (const rank of [3, 1, 0, 2]) agents[0]?.exited(rank, rank === 0 ? 0 : 0x100 * rank);
    await turn();
    agents[0]?.ended();
    expect(await result()).toMatchObject({ exitCode: 1, failures: [{ rank: 1 }, { rank: 3 }, { rank: 2 }] });
    const reported = events.filter((event) => event.type === 'failure').map((event) => event.primary);
    expect(reported).toEqual([true, false, false]);
  });

  test('the exit status is 128 plus the signal number, or 127 for a missing program', async () => {
    const killed = scriptedJob(['a'], 1);
    await killed.up();
    killed.agents[0]?.exited(0, KILL);
    killed.agents[0]?.ended();
    expect(await killed.result()).toMatchObject({ exitCode: 137, reason: 'rank-signal' });

    const missing = scriptedJob(['a'], 2);
    for (const agent of missing.agents) agent.hello();
    missing.spawn();
    missing.agents[0]?.spawned(0);
    missing.agents[0]?.spawnFailed(1, 2);
    await turn();
    expect(missing.agents[0]?.asked).toEqual([TERM, CONT]);
    missing.agents[0]?.exited(0, TERM);
    missing.agents[0]?.ended();
    expect(await missing.result()).toMatchObject({ exitCode: 127, failures: [{ type: 'spawn', cause: 'not-found' }] });
  });
});

describe('a host that is lost', () => {
  test('its ranks are lost, the other ranks are ended and the failure names the host', async () => {
    const { job, agents, up, result } = scriptedJob(['a', 'b'], 1);
    await up();
    agents[1]?.lost('connection reset');
    await turn();
    agents[0]?.exited(0, TERM);
    agents[0]?.ended();
    const { exitCode, failures, ranks, hosts } = await result();
    expect(exitCode).toBe(125);
    expect(failures).toMatchObject([
      { type: 'host-lost', host: 'b', cause: 'link-closed', detail: 'connection reset' },
    ]);
    expect(hosts.map((host) => host.state)).toEqual(['ok', 'lost']);
    expect(ranks[1]).toMatchObject({ pid: 101, exitCode: null, endedAt: null });
    await Promise.all(job.hosts.map((host) => host.close()));
    expect(agents.map((agent) => agent.closed)).toEqual([true, true]);
  });

  test('the loss of a host before its hello ends the other hosts', async () => {
    const { agents, job, result } = scriptedJob(['a', 'b'], 1);
    agents[0]?.hello();
    agents[1]?.lost(null);
    await turn();
    expect(agents[0]?.asked).toEqual(['end']);
    agents[0]?.ended();
    expect(await result()).toMatchObject({ exitCode: 125, failures: [{ type: 'agent', host: 'b' }] });
    await job.allUp;
  });

  test('a refusal or a foreign agent is a failure that names the host', async () => {
    const refused = scriptedJob(['a'], 1);
    const report = { type: 'refusal', message: 'ncclrun 2 is installed', remedy: 'install 1' };
    refused.agents[0]?.say(FrameKind.failure, 0, encodeJson(report));
    await turn();
    expect(await refused.result()).toMatchObject({ failures: [{ type: 'agent', host: 'a', message: report.message }] });

    const stray = scriptedJob(['a'], 1);
    stray.agents[0]?.hello({ jobId: 'other' });
    await turn();
    expect(await stray.result()).toMatchObject({ reason: 'agent', exitCode: 125 });
  });

  test('invalid messages lose the host that sent them', async () => {
    const random = seededRandom(5);
    const kinds = Object.values(FrameKind);
    for (let round = 0; round < 300; round++) {
      const { job, agents, up, result } = scriptedJob(['a', 'b'], 1);
      await up();
      for (let frame = 0; frame < 4; frame++) {
        const kind = kinds[random(kinds.length)] ?? FrameKind.heartbeat;
        if (kind !== FrameKind.ended) agents[1]?.say(kind, random(4), randomBytes(random(20), random), random(8));
      }
      agents[1]?.lost('done');
      await turn();
      agents[0]?.exited(0, job.state.name === 'running' ? 0 : TERM);
      agents[0]?.ended();
      const { hosts } = await result();
      expect(hosts.map((host) => host.state)).toEqual(['ok', 'lost']);
    }
  });
});

describe('the user', () => {
  test('the first ^C sends SIGINT, the second SIGTERM, and the job counts as interrupted', async () => {
    const { job, agents, up, result } = scriptedJob(['a'], 2);
    await up();
    job.interrupt();
    expect(agents[0]?.asked).toEqual([INT]);
    agents[0]?.exited(0, 0);
    job.terminate('SIGINT');
    expect(agents[0]?.asked).toEqual([INT, TERM, CONT]);
    agents[0]?.exited(1, TERM);
    agents[0]?.ended();
    expect(await result()).toMatchObject({ exitCode: 130, reason: 'interrupt', failures: [{ signal: 'SIGINT' }] });
  });

  test('SIGTERM ends the job while hosts are connecting', async () => {
    const { job, result } = scriptedJob(['a', 'b'], 1);
    job.terminate('SIGTERM');
    await job.allUp;
    expect(await result()).toMatchObject({ exitCode: 143 });
  });

  test('a closed output pipe ends the job like SIGPIPE', async () => {
    const { agents, up, result, setOutput } = scriptedJob(['a'], 1);
    await up();
    setOutput(() => Promise.reject(new FailureError({ type: 'interrupt', signal: 'SIGPIPE' })));
    for (let piece = 0; piece < 3; piece++) agents[0]?.say(FrameKind.output, 0, Buffer.from('y\n'));
    await turn();
    await turn();
    expect(agents[0]?.asked).toEqual([TERM, CONT]);
    agents[0]?.exited(0, TERM);
    agents[0]?.ended();
    expect(await result()).toMatchObject({ exitCode: 141, failures: [{ type: 'interrupt', signal: 'SIGPIPE' }] });
  });

  test('leave() waits for no host', async () => {
    const { agents, job, up, result } = scriptedJob(['a'], 1);
    await up();
    job.interrupt();
    job.terminate('SIGINT');
    job.leave();
    agents[0]?.lost('we closed it');
    expect(await result()).toMatchObject({ exitCode: 130, failures: [{ type: 'interrupt' }] });
    expect((await result()).failures).toHaveLength(1);
  });
});
