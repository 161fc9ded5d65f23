import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { NcclResult } from '../../control/messages/bootstrap.ts';
import { ByteReader } from '../../control/messages/bytes.ts';
import { ALL_RANKS, FrameKind } from '../../control/messages/frame.ts';
import type { Key } from '../../control/messages/key.ts';
import type { Exited } from '../../control/messages/payload.ts';
import { JOIN_ROUND, LeftHow, POST_ROUND, SPLIT_ROUND } from '../../control/messages/rendezvous.ts';
import { testAgents } from '../rig/agents.ts';
import type { TestAgents } from '../rig/agents.ts';
import { delivery, EngineClient, refusal, table } from '../rig/engine-client.ts';
import { randomBytes, seededRandom } from '../rig/random.ts';
import { newKey } from '../rig/rendezvous.ts';

const CLEANLY: Exited = { exitCode: 0, signalNumber: null, time: 0 };

const kinds = (frames: readonly { kind: number }[]) => frames.map(({ kind }) => kind);

describe('the bootstrap of one host', () => {
  test('the agent answers a hello with host, rank, epoch and job', async () => {
    using agents = testAgents(1);
    const client = await EngineClient.connect(agents.sockets[0] ?? '');
    const reader = new ByteReader((await client.hello(1)).payload, 'welcome');
    expect(['index', 'hosts', 'ranks', 'epoch'].map((field) => reader.u32(field))).toEqual([0, 1, 2, 0]);
    expect([reader.string('job'), reader.string('host')]).toEqual(['test', 'node0']);
    client.close();
  });

  test('the agent plans a communicator of its own ranks alone, and forgets it when they have left', async () => {
    using agents = testAgents(1);
    const key = newKey();
    const clients = await agents.engines([1, 0]);
    const plans = await Promise.all(clients.map((client, place) => client.join(key, 2, 1 - place)));
    expect(kinds(plans)).toEqual([FrameKind.plan, FrameKind.plan]);
    expect(plans.map(({ payload }) => new ByteReader(payload, 'plan').u32('local index'))).toEqual([1, 0]);
    expect(agents.up).toEqual([]);
    expect(agents.bootstraps[0]?.size).toBe(1);
    clients.forEach((client, place) => client.leave(key, 1 - place, LeftHow.finalized));
    await vi.waitFor(() => expect(agents.bootstraps[0]?.size).toBe(0));
  });

  test('ranks create the same communicator again after they left it', async () => {
    using agents = testAgents(1);
    const key = newKey();
    const [zero, one] = await agents.engines([0, 1]);
    for (let round = 0; round < 3; round++) {
      const plans = await Promise.all([zero?.join(key, 2, 0), one?.join(key, 2, 1)]);
      expect(plans.map((frame) => frame?.kind)).toEqual([FrameKind.plan, FrameKind.plan]);
      zero?.leave(key, 0, LeftHow.finalized);
      one?.leave(key, 1, LeftHow.finalized);
    }
  });

  test('the agent gathers contributions and delivers messages in either order', async () => {
    using agents = testAgents(1);
    const [zero, one] = await agents.engines([0, 1]);
    if (zero === undefined || one === undefined) throw new Error('two engines are needed');
    const key = newKey(7);
    const answers = await Promise.all([one.gather(key, 2, 1, 'one'), zero.gather(key, 2, 0, '')]);
    expect(answers.map(table)).toEqual([
      ['', 'one'],
      ['', 'one'],
    ]);
    const postKey = newKey(POST_ROUND);
    expect(delivery(await zero.post(postKey, 0, 1, 5, 'early'))).toBe('');
    expect(delivery(await one.fetch(postKey, 0, 1, 5))).toBe('early');
    const waiting = one.fetch(postKey, 0, 1, 6);
    await zero.post(postKey, 0, 1, 6, 'late');
    expect(delivery(await waiting)).toBe('late');
    expect(agents.bootstraps[0]?.size).toBe(0);
  });

  test('the agent refuses another job, naming both jobs, and another protocol version', async () => {
    using agents = testAgents(1);
    const client = await EngineClient.connect(agents.sockets[0] ?? '');
    const other = refusal(await client.hello(0, 'job-b'));
    expect(other).toEqual({
      result: NcclResult.invalidUsage,
      sentence: `pid ${process.pid} belongs to job 'job-b', the agent at this socket serves job 'test'`,
    });
    expect(refusal(await client.hello(0, 'test', 99)).sentence).toMatch(/speaks version 99 of the bootstrap protocol/);
    expect(refusal(await client.join(newKey(), 1, 0)).sentence).toMatch(/must be its hello/);
    client.close();
  });

  test('every rank learns that two processes claim the same rank', async () => {
    using agents = testAgents(1);
    const [zero, one] = await agents.engines([0, 1]);
    const key = newKey();
    const answers = await Promise.all([zero?.join(key, 3, 0), one?.join(key, 3, 0)]);
    for (const answer of answers) {
      if (answer === undefined) throw new Error('no answer');
      expect(refusal(answer)).toMatchObject({
        result: NcclResult.invalidUsage,
        sentence: expect.stringMatching(/rank 0 of communicator \w+ is claimed twice/),
      });
    }
    expect(agents.bootstraps[0]?.size).toBe(0);
    expect(agents.hub.hub.size).toBe(0);
  });

  test('the agent survives strangers, garbage and damaged requests', async () => {
    using agents = testAgents(1);
    const random = seededRandom(9);
    const [zero, one] = await agents.engines([0, 1]);
    const first = zero?.join(newKey(), 1, 0);
    for (let round = 0; round < 30; round++) {
      const stranger = await EngineClient.connect(agents.sockets[0] ?? '');
      stranger.write(randomBytes(1 + random(200), random));
      if (random(2) === 0) stranger.close();
      else {
        const guest = await EngineClient.connect(agents.sockets[0] ?? '');
        await guest.hello(1);
        const answer = await guest.ask(FrameKind.join, randomBytes(random(220), random));
        expect(answer.kind).toBe(FrameKind.refused);
        guest.close();
        stranger.close();
      }
    }
    expect((await first)?.kind).toBe(FrameKind.plan);
    const key = newKey();
    const plans = await Promise.all([zero?.join(key, 2, 0), one?.join(key, 2, 1)]);
    expect(plans.map((frame) => frame?.kind)).toEqual([FrameKind.plan, FrameKind.plan]);
  });
});

describe('an agent that leaves plans to the launcher', () => {
  test.each([
    ['joins', JOIN_ROUND, true],
    ['splits', SPLIT_ROUND, true],
    ['gathers', 7, false],
  ] as const)('the agent sends %s of its own ranks up: %s', async (_what, round, isSent) => {
    using agents = testAgents(1, undefined, false);
    const key = newKey(round);
    const clients = await agents.engines([0, 1]);
    const answers = clients.map(async (client, rank) => {
      if (round === SPLIT_ROUND) await client.join({ ...key, round: JOIN_ROUND }, 2, rank);
      if (round === SPLIT_ROUND) agents.up.splice(0);
      if (round === SPLIT_ROUND) return client.split(key, 2, rank, 0, rank);
      return round === JOIN_ROUND ? client.join(key, 2, rank) : client.gather(key, 2, rank, 'x');
    });
    await Promise.all(answers);
    expect(kinds(agents.up).includes(FrameKind.merged)).toBe(isSent);
  });
});

describe('the bootstrap of several hosts', () => {
  test.each([
    [1, 500],
    [2, 1],
  ])('an agent of %d hosts waits %d ms for the other ranks of its host', async (hosts, milliseconds) => {
    using agents = testAgents(hosts);
    const [client] = await agents.engines([0]);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    void client?.gather(newKey(7), 2 * hosts, 0, 'x');
    await client?.ask(FrameKind.telemetry, new Uint8Array(0)); // the agent handles both in this order
    vi.advanceTimersByTime(milliseconds - 1);
    expect(agents.up).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(kinds(agents.up)).toEqual([FrameKind.merged]);
  });

  test.each([
    [1, []],
    [2, ['host', 'host']],
  ])('%d hosts announce their topologies for ranks on processors: %j', async (hosts, announced) => {
    const asked: string[] = [];
    using agents = testAgents(hosts, (device) => {
      asked.push(device);
      return Promise.resolve(null);
    });
    const key = newKey(7);
    const ranks = Array.from({ length: 2 * hosts }, (_, rank) => rank);
    const clients = await agents.engines(ranks);
    await Promise.all(clients.map((client, rank) => client.gather(key, ranks.length, rank, 'x')));
    expect(asked.filter((device) => device === 'host')).toEqual(announced);
  });

  test('each host sends one message per step, and every rank gets its local index', async () => {
    using agents = testAgents(3);
    const key = newKey();
    const ranks = [5, 2, 0, 3, 1, 4];
    const clients = await agents.engines(ranks);
    const plans = await Promise.all(clients.map((client, place) => client.join(key, 6, ranks[place] ?? 0)));
    expect(plans.map(({ payload }) => new ByteReader(payload, 'plan').u32('local index'))).toEqual([1, 0, 0, 1, 1, 0]);
    expect(agents.up.length).toBeLessThanOrEqual(6);
    clients.forEach((client, place) => client.leave(key, ranks[place] ?? 0, LeftHow.finalized));
    await vi.waitFor(() => expect(agents.hub.hub.size).toBe(0));
    expect(agents.bootstraps.map(({ size }) => size)).toEqual([0, 0, 0]);
  });

  test('ranks of two hosts gather and exchange messages', async () => {
    using agents = testAgents(2);
    const [zero, one, two, three] = await agents.engines([0, 1, 2, 3]);
    if (zero === undefined || one === undefined || two === undefined || three === undefined) throw new Error('engines');
    const key = newKey(0);
    const gathered = await Promise.all(
      [zero, one, two, three].map((client, rank) => client.gather(key, 4, rank, `${rank}`)),
    );
    expect(gathered.map(table)).toEqual(Array.from({ length: 4 }, () => ['0', '1', '2', '3']));
    const waiting = three.fetch(key, 0, 3, 1);
    await zero.post(key, 0, 3, 1, 'across');
    expect(delivery(await waiting)).toBe('across');
    await zero.post(key, 0, 1, 1, 'inside');
    expect(delivery(await one.fetch(key, 0, 1, 1))).toBe('inside');
  });

  test('the agent of a host plans a communicator inside it', async () => {
    using agents = testAgents(2);
    const [two, three] = await agents.engines([2, 3]);
    const key = newKey();
    const plans = await Promise.all([two?.join(key, 2, 0), three?.join(key, 2, 1)]);
    expect(plans.map((frame) => frame?.kind)).toEqual([FrameKind.plan, FrameKind.plan]);
    expect(agents.up.filter(({ kind }) => kind === FrameKind.merged).length).toBeLessThanOrEqual(1);
  });

  test('the agent blames no particular rank when a joining rank gives up', async () => {
    using agents = testAgents(2);
    const [third] = await agents.engines([3]);
    const key = newKey();
    const answer = third?.join(key, 4, 3);
    third?.leave(key, 3, 2);
    expect(await answer).toMatchObject({ kind: FrameKind.refused });
    const left = agents.up.filter(({ kind }) => kind === FrameKind.left);
    expect(left.map(({ subject }) => subject)).toEqual([ALL_RANKS]);
  });

  test('every other rank learns that a rank aborted, and why', async () => {
    using agents = testAgents(2);
    const clients = await agents.engines([0, 1, 2, 3]);
    const key = newKey();
    await Promise.all(clients.map((client, rank) => client.join(key, 4, rank)));
    clients[1]?.leave(key, 1, LeftHow.aborted, 'loss is NaN');
    for (const rank of [0, 2, 3]) {
      expect(await clients[rank]?.nextAbort()).toEqual({
        rank: 1,
        result: NcclResult.remoteError,
        sentence: `rank 1 (node0, pid ${process.pid}) aborted the communicator: loss is NaN`,
      });
    }
    expect(clients[1]?.aborts).toEqual([]);
    for (const [rank, client] of clients.entries()) client.leave(key, rank, LeftHow.finalized);
    await vi.waitFor(() => expect(agents.bootstraps.map(({ size }) => size)).toEqual([0, 0]));
    expect(agents.hub.hub.size).toBe(0);
  });
});

describe('a communicator that one rank leaves by ncclCommAbort', () => {
  test('local ranks learn of the abort, remote ranks only when they wait, and no operation is ended', async () => {
    using agents = testAgents(2);
    const clients = await agents.engines([0, 1, 2, 3]);
    const key = newKey();
    await Promise.all(clients.map((client, rank) => client.join(key, 4, rank)));
    clients[1]?.leave(key, 1, LeftHow.abortedAlone, 'loss is NaN');
    const sentence = `rank 1 (node0, pid ${process.pid}) aborted the communicator: loss is NaN`;
    const reported = [{ rank: 1, result: NcclResult.remoteError, sentence }];
    await vi.waitFor(() => expect(clients.map(({ gone }) => gone)).toEqual([reported, [], [], []]));
    const late = clients[3]?.gather({ ...key, round: 1 }, 4, 3, 'x'); // needs all
    expect(refusal((await late) ?? raise('no answer'))).toEqual({ result: NcclResult.remoteError, sentence });
    expect(clients.flatMap(({ aborts }) => aborts)).toEqual([]);
    for (const rank of [0, 2, 3]) clients[rank]?.leave(key, rank, LeftHow.finalized);
    await vi.waitFor(() => expect(agents.bootstraps.map(({ size }) => size)).toEqual([0, 0]));
    expect(agents.hub.hub.size).toBe(0);
  });
});

describe('a killed process', () => {
  test('the operations of its peers end on every host, and its telemetry page stays readable', async () => {
    using agents = testAgents(2);
    const clients = await agents.engines([0, 1, 2]);
    const key = newKey();
    const child = await startEngine(agents, 3);
    const plans = clients.map((client, rank) => client.join(key, 4, rank));
    const joined = once(child, 'message');
    askToJoin(child, key, 4);
    await Promise.all([...plans, joined]);
    await kill(agents, child, 3);
    for (const client of clients) {
      expect(await client.nextAbort()).toMatchObject({
        rank: 3,
        result: NcclResult.remoteError,
        sentence: `rank 3 (node1, pid ${child.pid}) was killed by SIGKILL`,
      });
    }
    const late = clients[2]?.gather({ ...key, round: 1 }, 4, 2, 'x');
    expect(refusal((await late) ?? raise('no answer')).sentence).toMatch(/rank 3 .* was killed by SIGKILL/);
    for (const [rank, client] of clients.entries()) client.leave(key, rank, LeftHow.finalized);
    await vi.waitFor(() => expect(agents.bootstraps.map(({ size }) => size)).toEqual([0, 0]));
  });

  test('waiting ranks fail when a process dies after it joined', async () => {
    using agents = testAgents(2);
    const clients = await agents.engines([0, 2]);
    const key = newKey();
    const child = await startEngine(agents, 3);
    const joins = clients.map((client, place) => client.join(key, 4, 2 * place));
    askToJoin(child, key, 4);
    await vi.waitFor(() => expect(agents.up.filter(({ kind }) => kind === FrameKind.merged).length).toBeGreaterThan(1));
    await kill(agents, child, 3);
    for (const answer of await Promise.all(joins)) {
      expect(refusal(answer).sentence).toMatch(/^rank 3 \(node1(, pid \d+)?\) was killed by SIGKILL/);
    }
    expect(agents.hub.hub.size).toBe(0);
  });
});

describe('an exit that the guardian reports before the agent has read the last frames of its engines', () => {
  test('a rank that gave up joining before it exited is not held to have left others waiting', async () => {
    using agents = testAgents(1);
    const [zero] = await agents.engines([0]);
    const key = newKey();
    const join = zero?.join(key, 2, 0);
    await vi.waitFor(() => expect(agents.bootstraps[0]?.size).toBe(1));
    zero?.leave(key, 0, LeftHow.aborted, 'no patience'); // in the socket, from which nobody has read it
    await reportEnd(agents, 0, CLEANLY);
    agents.hub.hub.rankEnded(0, 'exited with status 0');
    expect(agents.hub.missing).toEqual([]);
    expect(refusal((await join) ?? raise('no answer')).sentence).toMatch(/aborted the communicator: no patience$/);
    expect([agents.bootstraps[0]?.size, agents.hub.hub.size]).toEqual([0, 0]);
  });

  test('reports keep their order, and a bootstrap that closes keeps none of them', async () => {
    using agents = testAgents(1);
    await agents.engines([0, 1]);
    const [bootstrap] = agents.bootstraps;
    const order: string[] = [];
    bootstrap?.rankEnded(0, CLEANLY, () => order.push('rank 0'));
    bootstrap?.rankEnded(1, CLEANLY, () => order.push('rank 1'));
    bootstrap?.afterReports(() => order.push('no rank is left'));
    expect(order).toEqual([]);
    await vi.waitFor(() => expect(order).toEqual(['rank 0', 'rank 1', 'no rank is left']));
    bootstrap?.afterReports(() => order.push('nothing waits'));
    expect(order.splice(0)).toContain('nothing waits');
    const other = testAgents(1);
    other.bootstraps[0]?.rankEnded(0, CLEANLY, () => order.push('rank 0 again'));
    other.bootstraps[0]?.afterReports(() => order.push('closed'));
    other[Symbol.dispose]();
    await vi.waitFor(() => expect(order).toEqual(['rank 0 again', 'closed']));
  });
});

test('no rank keeps waiting for a process that is killed while it joins', async () => {
  using agents = testAgents(2);
  const clients = await agents.engines([0, 1, 2]);
  for (let round = 0; round < 5; round++) {
    const key = newKey();
    const child = await startEngine(agents, 3);
    const joins = clients.map((client, rank) => client.join(key, 4, rank));
    const asked = once(child, 'message');
    askToJoin(child, key, 4);
    await asked;
    await kill(agents, child, 3);
    for (const [rank, answer] of (await Promise.all(joins)).entries()) {
      const client = clients[rank] ?? raise('no client');
      const { sentence } = answer.kind === FrameKind.plan ? await client.nextAbort() : refusal(answer);
      expect(sentence).toMatch(/^rank 3 \(node1(, pid \d+)?\) was killed by SIGKILL/);
      client.leave(key, rank, LeftHow.finalized);
    }
  }
  await vi.waitFor(() => expect(agents.bootstraps.map(({ size }) => size)).toEqual([0, 0]));
  expect(agents.hub.hub.size).toBe(0);
});

async function startEngine(agents: TestAgents, rank: number): Promise<ChildProcess> {
  const host = Math.floor(rank / 2);
  const program = new URL('../rig/programs/engine-process.ts', import.meta.url).pathname;
  const child = fork(program, [agents.sockets[host] ?? '', 'test', String(rank)], { execArgv: [] });
  agents.bootstraps[host]?.rankSpawned(rank, child.pid ?? 0);
  expect(await once(child, 'message')).toContain('ready');
  return child;
}

function askToJoin(child: ChildProcess, key: Key, size: number): void {
  child.send({ id: key.id, size });
}

/** As the guardian and the job would report it. */
async function kill(agents: TestAgents, child: ChildProcess, rank: number): Promise<void> {
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
  await reportEnd(agents, rank, { exitCode: null, signalNumber: 9, time: Date.now() });
  agents.hub.hub.rankEnded(rank, 'was killed by SIGKILL');
}

/** Resolves when the agent would pass the report on. */
function reportEnd(agents: TestAgents, rank: number, exited: Exited): Promise<void> {
  return new Promise((resolve) => agents.bootstraps[Math.floor(rank / 2)]?.rankEnded(rank, exited, resolve));
}

function raise(message: string): never {
  throw new Error(message);
}
