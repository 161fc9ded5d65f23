/** Which addresses hosts try of each other, and agents that are kept from attempt to attempt. */
import { describe, expect, test } from 'vitest';
import { makeFrame } from '../../control/messages/codec.ts';
import { FrameKind, type Frame } from '../../control/messages/frame.ts';
import type { AgentOrder } from '../../control/messages/link.ts';
import type { ReachAnswer, ReachQuestion } from '../../control/messages/reach.ts';
import { reachEachOther } from '../../launcher/job/reach.ts';
import { KeptAgents } from '../../launcher/remote/kept-agents.ts';
import type { ConnectionEnd, ConnectionHandler } from '../../launcher/remote/shell/connection.ts';
import { hostNamed } from '../rig/host-slots.ts';
import { scriptedJob } from '../rig/scripted-host.ts';

/** `leads`: whether `from` reaches `to` at an address. `mute`: hosts that answer nothing. */
async function reached(
  addresses: readonly (readonly string[])[],
  meeting: number,
  leads: (from: number, to: number, address: string, thorough: boolean) => boolean,
  mute: readonly number[] = [],
) {
  const asked: string[] = [];
  const answer = (from: number, question: ReachQuestion): ReachAnswer | null => {
    if (mute.includes(from)) return null;
    if (question.type === 'listen') return { type: 'listening', port: 100 + from };
    const found = question.targets.map(({ host, addresses: all, port, thorough }) => {
      const to = Number(host.slice(1));
      asked.push(`${from}>${to}:${port}${thorough ? '!' : ''}`);
      return all.filter((address) => leads(from, to, address, thorough));
    });
    return { type: 'reached', found };
  };
  const hosts = addresses.map((all, index) => ({
    name: `h${index}`,
    addresses: all,
    nics: [],
    ask: async (question: ReachQuestion) => answer(index, question),
  }));
  return { ...(await reachEachOther(hosts, meeting)), asked: asked.toSorted().join(' ') };
}

const two = (count: number) => Array.from({ length: count }, (_, index) => [`10.0.0.${index}`, `10.1.0.${index}`]);

describe('hosts that try each other', () => {
  test('a single host, and hosts with one address each, are asked nothing', async () => {
    expect(await reached([['a', 'b']], 0, () => true)).toMatchObject({ addresses: ['a'], problems: [], asked: '' });
    expect(await reached([['a'], ['b']], 0, () => true)).toMatchObject({
      addresses: ['a', 'b'],
      problems: [],
      asked: '',
    });
    expect(await reached([['a', 'x'], ['b']], 0, () => true)).toMatchObject({
      addresses: ['a', 'b'],
      asked: '0>1:101 1>0:100',
    });
  });

  test('each tries its successor, and all that of rank 0', async () => {
    expect((await reached(two(4), 0, () => true)).asked).toBe('0>1:101 1>0:100 1>2:102 2>0:100 2>3:103 3>0:100');
    expect((await reached(two(4), 2, () => true)).asked).toBe('0>1:101 0>2:102 1>2:102 2>3:103 3>0:100 3>2:102');
  });

  test('the best address by which all reach a host is taken', async () => {
    const { addresses, problems } = await reached(
      two(3),
      0,
      (from, _to, address) => from !== 2 || address.startsWith('10.1'),
    );
    expect([addresses, problems]).toEqual([['10.1.0.0', '10.0.0.1', '10.0.0.2'], []]);
  });

  test('a host that nobody reaches quickly is tried again thoroughly, and who does not reach it is named', async () => {
    const found = await reached(
      two(3),
      0,
      (_from, to, address, thorough) => to !== 1 || (thorough && address.startsWith('10.1')),
    );
    expect([found.addresses, found.problems]).toEqual([['10.0.0.0', '10.1.0.1', '10.0.0.2'], []]);
    expect(found.asked).toBe('0>1:101 0>1:101! 1>0:100 1>2:102 2>0:100');
    const never = await reached(two(3), 0, (_from, to) => to !== 1);
    expect(never.addresses).toEqual(['10.0.0.0', '10.0.0.1', '10.0.0.2']);
    expect(never.problems).toEqual([
      expect.stringMatching(
        /^h0 cannot reach h1: tried 10\.0\.0\.1, 10\.1\.0\.1; a communicator with ranks on both fails /u,
      ),
    ]);
    const max = await reached(
      two(3),
      1,
      (from, to, address, thorough) =>
        to !== 1 ||
        (thorough && (from === 0 || address.startsWith('10.1')) && !(from === 2 && address.startsWith('10.0'))),
    );
    expect([max.addresses[1], max.problems]).toEqual(['10.1.0.1', []]);
  });

  test('hosts that do not answer decide nothing', async () => {
    const { addresses, problems, asked } = await reached(two(3), 0, (from) => from !== 0, [1]);
    expect([addresses[0], addresses[2], problems]).toEqual(['10.0.0.0', '10.0.0.2', []]);
    expect(asked).toBe('0>1:0 2>0:100');
  });
});

describe('agents that are kept', () => {
  const order: AgentOrder = scriptedJob(['a'], 1).agents[0]?.order ?? expect.unreachable();

  function rig() {
    const started: { name: string; handler: ConnectionHandler; sent: FrameKind[]; closed: boolean[] }[] = [];
    const agents = new KeptAgents((host, _order, handler) => {
      const connection = { name: host.name, handler, sent: new Array<FrameKind>(), closed: new Array<boolean>() };
      started.push(connection);
      return {
        send: ({ kind }: Frame) => void connection.sent.push(kind),
        close: async (lost: boolean) => void connection.closed.push(lost),
      };
    });
    const start = (local = false) => {
      const seen = { frames: new Array<FrameKind>(), ends: new Array<ConnectionEnd>() };
      const connection = agents.start(hostNamed('a', { local }), order, {
        frame: ({ kind }) => void seen.frames.push(kind),
        remoteShell: () => undefined,
        step: () => undefined,
        staging: () => undefined,
        closed: (end) => void seen.ends.push(end),
      });
      return { connection, seen };
    };
    return { agents, started, start };
  }
  const ended = makeFrame(FrameKind.ended);

  test('an agent whose ranks have ended gets the next order, and is closed with the job', async () => {
    const { agents, started, start } = rig();
    const first = start();
    first.connection.send(makeFrame(FrameKind.end));
    started[0]?.handler.frame(ended);
    await first.connection.close(false);
    started[0]?.handler.frame(makeFrame(FrameKind.heartbeat));
    const second = start();
    started[0]?.handler.frame(makeFrame(FrameKind.hello));
    expect([started.length, started[0]?.sent, first.seen.frames, second.seen.frames]).toEqual([
      1,
      [FrameKind.end, FrameKind.order],
      [FrameKind.ended],
      [FrameKind.hello],
    ]);
    started[0]?.handler.frame(ended);
    await second.connection.close(true);
    expect(started[0]?.closed).toEqual([true]);
    await agents.close();
    expect(started[0]?.closed).toEqual([true]);
  });

  test('an idle agent is closed with the job, and one that has gone is not', async () => {
    const idle = rig();
    const { connection } = idle.start();
    connection.send(makeFrame(FrameKind.end));
    idle.started[0]?.handler.frame(ended);
    await connection.close(false);
    await idle.agents.close();
    expect(idle.started[0]?.closed).toEqual([false]);
    const gone = rig();
    const first = gone.start();
    first.connection.send(makeFrame(FrameKind.end));
    gone.started[0]?.handler.frame(ended);
    await first.connection.close(false);
    gone.started[0]?.handler.closed({ problem: 'x', failure: null });
    await gone.agents.close();
    gone.start();
    expect([gone.started.length, gone.started[0]?.closed, first.seen.ends]).toEqual([2, [], []]);
  });

  /** The first order is over, and the agent waits. */
  const idled = async () => {
    const all = rig();
    const first = all.start();
    first.connection.send(makeFrame(FrameKind.end));
    all.started[0]?.handler.frame(ended);
    await first.connection.close(false);
    return all;
  };

  test('an agent that has gone before it answers the next order is replaced unnoticed', async () => {
    const { started, start } = await idled();
    const second = start();
    started[0]?.handler.closed({ problem: 'x', failure: null });
    started[1]?.handler.frame(makeFrame(FrameKind.hello));
    started[1]?.handler.closed({ problem: 'y', failure: null });
    expect([started.length, second.seen.frames, second.seen.ends]).toEqual([
      2,
      [FrameKind.hello],
      [{ problem: 'y', failure: null }],
    ]);
  });

  test('an agent that has gone is not replaced where its ranks are to end already', async () => {
    const { started, start } = await idled();
    const second = start();
    second.connection.send(makeFrame(FrameKind.end));
    started[0]?.handler.closed({ problem: 'x', failure: null });
    expect([started.length, second.seen.ends]).toEqual([1, [{ problem: 'x', failure: null }]]);
  });

  test('what an agent says of the order before does not reach the next one', async () => {
    const { started, start } = await idled();
    const second = start();
    started[0]?.handler.frame(makeFrame(FrameKind.output));
    started[0]?.handler.frame(makeFrame(FrameKind.hello));
    started[0]?.handler.frame(makeFrame(FrameKind.output));
    expect(second.seen.frames).toEqual([FrameKind.hello, FrameKind.output]);
  });

  test('an agent that got another order by its connection is not kept', async () => {
    const { started, start } = rig();
    const { connection } = start();
    for (const kind of [FrameKind.end, FrameKind.order, FrameKind.end]) connection.send(makeFrame(kind));
    started[0]?.handler.frame(ended);
    await connection.close(false);
    expect(started[0]?.closed).toEqual([false]);
  });

  test('an agent that ended unasked, and the one in the launcher, are not kept', async () => {
    for (const local of [false, true]) {
      const { started, start } = rig();
      const { connection } = start(local);
      if (local) connection.send(makeFrame(FrameKind.end));
      started[0]?.handler.frame(ended);
      await connection.close(false);
      start(local);
      expect([started.length, started[0]?.closed]).toEqual([2, [false]]);
    }
  });
});
