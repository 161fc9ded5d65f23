/** By which addresses hosts reach each other: real sockets on addresses of loopback, which stand for hosts with several. */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { reachEachOther } from '../../launcher/job/reach.ts';
import { signOf } from '../../control/messages/reach.ts';
import type { ReachHost } from '../../launcher/job/reach-tries.ts';
import { ReachProbe } from '../../worker/agent/reach.ts';

const open: { close(): void }[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.close();
});

function agentOf(name: string): ReachProbe {
  const reach = new ReachProbe('job', name, null);
  open.push(reach);
  return reach;
}

function hostOf(name: string, addresses: readonly string[], reach = agentOf(name)): ReachHost {
  return { name, addresses, nics: [], ask: (question) => reach.answer(question) };
}

/** Of 127.0.0.0/8 a host has an address in each of these; its agent answers at all of them. */
function withRails(name: string, ...addresses: readonly string[]): ReachHost {
  const nics = addresses.map((address, rail) => ({
    name: `eth${rail}`,
    address,
    prefixLength: 24,
    speedMbps: 10_000,
    pciPath: null,
    isVirtual: false,
    isNamed: false,
  }));
  return { ...hostOf(name, addresses), nics };
}

function mute(name: string): ReachHost {
  return { name, addresses: ['127.0.0.1'], nics: [], ask: () => Promise.reject(new Error('asked')) };
}

async function stranger(greet: (server: Server) => void): Promise<number> {
  const server = createServer();
  greet(server);
  open.push(server);
  server.listen(0, '127.0.0.9');
  await once(server, 'listening');
  const address = server.address();
  return isTcp(address) ? address.port : 0;
}

/** Whoever connects speaks with that agent, after so long. */
async function relayTo(reach: ReachProbe, server: Server, delayMs = 0): Promise<void> {
  const answer = await reach.answer({ type: 'listen' });
  const port = 'port' in answer ? answer.port : 0;
  server.on('connection', (socket) => {
    const there = connect(port, '127.0.0.1');
    for (const side of [socket, there]) side.on('error', () => undefined); // the test may be over
    setTimeout(() => socket.pipe(there).pipe(socket), delayMs);
  });
}

function isTcp(address: AddressInfo | string | null): address is AddressInfo {
  return typeof address === 'object' && address !== null;
}

describe('hosts with several addresses', () => {
  test('hosts use their first address if it is reachable', async () => {
    const hosts = ['a', 'b', 'c'].map((name, index) => hostOf(name, [`127.0.0.${index + 1}`, '127.0.0.9']));
    expect(await reachEachOther(hosts, 0)).toMatchObject({
      addresses: ['127.0.0.1', '127.0.0.2', '127.0.0.3'],
      problems: [],
    });
  });

  test('hosts use the first reachable address', async () => {
    const hosts = [hostOf('a', ['127.0.0.1']), hostOf('b', ['198.51.100.1', '127.0.0.2', '127.0.0.3'])];
    expect(await reachEachOther(hosts, 0)).toMatchObject({ addresses: ['127.0.0.1', '127.0.0.2'], problems: [] });
  });

  test('the problem names the unreachable host, its peer and the addresses tried', async () => {
    const hosts = [hostOf('a', ['127.0.0.1']), hostOf('b', ['198.51.100.1', '198.51.100.2'])];
    expect(await reachEachOther(hosts, 0)).toMatchObject({
      addresses: ['127.0.0.1', '198.51.100.1'],
      problems: [
        'a cannot reach b: tried 198.51.100.1, 198.51.100.2; a communicator with ranks on both fails when its ranks have tried to connect for ' +
          '30 s. See the firewall and the routes between them',
      ],
    });
  }, 15_000);

  test('hosts use an address that answers only after a TCP retransmission', async () => {
    const b = agentOf('b');
    const late: ReachHost = {
      name: 'b',
      addresses: ['127.0.0.9', '198.51.100.1'],
      nics: [],
      // It stands at 127.0.0.9 as its own agent does, but what connects is heard after TCP's first retransmission.
      ask: async (question) => {
        if (question.type !== 'listen') return b.answer(question);
        return { type: 'listening', port: await stranger((server) => void relayTo(b, server, 1300)) };
      },
    };
    const hosts = [hostOf('a', ['127.0.0.1']), late];
    expect(await reachEachOther(hosts, 0)).toMatchObject({ addresses: ['127.0.0.1', '127.0.0.9'], problems: [] });
  }, 15_000);

  test('a host that does not answer delays nobody', async () => {
    const silent: ReachHost = {
      name: 'b',
      addresses: ['127.0.0.2', '127.0.0.3'],
      nics: [],
      ask: () => new Promise(() => {}),
    };
    const { addresses } = await reachEachOther([hostOf('a', ['127.0.0.1']), silent], 0);
    expect(addresses).toEqual(['127.0.0.1', '127.0.0.2']);
  });

  test('NICs of subnets that lead to all hosts are not left out', async () => {
    const hosts = [
      withRails('a', '127.0.0.1', '127.0.1.1'),
      withRails('b', '127.0.0.2', '127.0.1.2'),
      withRails('c', '127.0.0.3', '127.0.1.3'),
    ];
    const { unreached, problems } = await reachEachOther(hosts, 0);
    expect({ unreached, problems }).toEqual({ unreached: [new Set(), new Set(), new Set()], problems: [] });
  });

  test('a subnet in which one host does not answer is left out on every host, and only that one', async () => {
    const hosts = [
      withRails('a', '127.0.0.1', '127.0.1.1', '127.0.2.1'),
      withRails('b', '127.0.0.2', '127.0.1.2', '127.0.2.2'),
      withRails('c', '127.0.0.3', '127.0.1.3', '127.0.2.3'),
    ];
    const [, second] = hosts;
    if (second === undefined) throw new Error('no second host');
    // As a firewall would: nothing that goes to 127.0.1.3 arrives.
    const blocked: ReachHost = {
      ...second,
      async ask(question) {
        const answer = await second.ask(question);
        if (answer?.type !== 'reached') return answer;
        return { ...answer, found: answer.found.map((its) => its.filter((address) => address !== '127.0.1.3')) };
      },
    };
    const { addresses, unreached, problems } = await reachEachOther(hosts.with(1, blocked), 0);
    expect(addresses).toEqual(['127.0.0.1', '127.0.0.2', '127.0.0.3']);
    expect(unreached).toEqual([new Set(['127.0.1.1']), new Set(['127.0.1.2']), new Set(['127.0.1.3'])]);
    expect(problems).toEqual([
      'b cannot reach c from eth1 (127.0.1.2) at eth1 (127.0.1.3): the job does not use the interfaces of that subnet. ' +
        'See the firewall and the cables between them',
    ]);
  });

  test('hosts with one address each are not probed', async () => {
    expect((await reachEachOther([mute('a'), mute('b')], 0)).addresses).toEqual(['127.0.0.1', '127.0.0.1']);
  });
});

const strangers: readonly (readonly [string, (server: Server) => void])[] = [
  ['says nothing', () => undefined],
  ['says something else', (server) => server.on('connection', (socket) => socket.end('HTTP/1.1 400\r\n\r\n'))],
  ['never ends', (server) => server.on('connection', (socket) => socket.write('x'.repeat(1 << 20)))],
  ["has another host's identity", (server) => void relayTo(agentOf('c'), server)],
];

test.each(strangers)('a stranger that %s is not mistaken for a host', async (_, greet) => {
  const port = await stranger(greet);
  const targets = [{ host: 'b', addresses: ['127.0.0.9'], sources: null, port, thorough: true }];
  expect(await agentOf('a').answer({ type: 'probe', targets })).toEqual({ type: 'reached', found: [[]] });
});

test('the best address is waited for when another one answers sooner, and the others no longer once it has answered', async () => {
  const late = agentOf('b');
  const port = await stranger((server) => void relayTo(late, server, 50));
  const quick = createServer((socket) => void socket.end(signOf('job', 'b')));
  open.push(quick);
  quick.listen(port, '127.0.0.8');
  await once(quick, 'listening');
  // An answer may take longer than a quick try waits on a busy machine: then it is tried again.
  const found = (addresses: readonly string[], thorough: boolean) =>
    expect.poll(
      () => agentOf('a').answer({ type: 'probe', targets: [{ host: 'b', addresses, sources: null, port, thorough }] }),
      { timeout: 15_000 },
    );
  const [slow, fast] = ['127.0.0.9', '127.0.0.8'];
  await found([slow, fast], false).toEqual({ type: 'reached', found: [[slow, fast]] });
  await found([fast, slow], false).toEqual({ type: 'reached', found: [[fast]] });
  await found([fast, slow], true).toEqual({ type: 'reached', found: [[fast, slow]] });
}, 50_000);

test('the listener survives connections that send data and reset', async () => {
  const reach = agentOf('b');
  const answer = await reach.answer({ type: 'listen' });
  const port = 'port' in answer ? answer.port : 0;
  for (let knock = 0; knock < 50; knock++) {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    socket.write('x'.repeat(knock * 1000));
    socket.resetAndDestroy();
  }
  const targets = [{ host: 'b', addresses: ['127.0.0.1'], sources: null, port, thorough: false }];
  expect(await agentOf('a').answer({ type: 'probe', targets })).toEqual({ type: 'reached', found: [['127.0.0.1']] });
});
