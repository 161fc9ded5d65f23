/** --port-range: how it is read, what is refused, and which port of it is taken. */
import { createServer, type Server } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { LinkServer } from '../../control/link/link-server.ts';
import { SECRET_BYTES } from '../../control/link/secret.ts';
import { listenWithin, parsePortRange } from '../../control/port-range.ts';
import { tooFewPorts } from '../../launcher/job/port-need.ts';
import { wanted } from '../../launcher/model/values.ts';
import { loadNative } from '../../worker/engine/load.ts';
import { ReachProbe } from '../../worker/agent/reach.ts';
import { freeRow, portOf } from '../rig/port-row.ts';
import { allocateHosts } from '../../launcher/allocation/allocate.ts';
import { mapRanks } from '../../launcher/mapping/map-ranks.ts';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

function server(): Server {
  const made = createServer();
  servers.push(made);
  return made;
}

describe('the range', () => {
  test.each([
    ['20000-20015', { first: 20_000, last: 20_015 }],
    ['20000:20015', { first: 20_000, last: 20_015 }],
    ['1024-65535', { first: 1024, last: 65_535 }],
    ['20000-20000', { first: 20_000, last: 20_000 }],
  ])('%s is read', (text, range) => {
    expect(parsePortRange(text)).toEqual(range);
  });

  test.each([
    ['20015-20000', '20000-20015, the lower port first'],
    ['20015:20000', '20000-20015, the lower port first'],
    ['1025-1024', '1024-1025, the lower port first'],
    ['70000-70000', 'LO-HI, ports from 1024 to 65535 such as 20000-20999'],
    ['1023-1024', 'a range of ports from 1024 on'],
    ['1024-1023', 'a range of ports from 1024 on'],
    ['90-80', 'a range of ports from 1024 on'],
    ['80-90', 'a range of ports from 1024 on'],
    ['20000', 'LO-HI, ports from 1024 to 65535 such as 20000-20999'],
    ['20000-', 'LO-HI, ports from 1024 to 65535 such as 20000-20999'],
    ['a-b', 'LO-HI, ports from 1024 to 65535 such as 20000-20999'],
    ['20000-70000', 'LO-HI, ports from 1024 to 65535 such as 20000-20999'],
    ['20000-20015-20030', 'LO-HI, ports from 1024 to 65535 such as 20000-20999'],
  ])('%s is refused with what is wanted', (text, sentence) => {
    expect(parsePortRange(text)).toBeNull();
    expect(wanted({ type: 'ports' }, text)).toBe(sentence);
  });
});

describe('a server within a range', () => {
  test('steps over ports that others have', async () => {
    const range = await freeRow(3);
    const ports: number[] = [];
    for (let i = 0; i < 3; i += 1) {
      const made = server();
      await listenWithin(made, {}, range);
      ports.push(portOf(made));
    }
    expect(ports.toSorted((one, other) => one - other)).toEqual([range.first, range.first + 1, range.last]);
  });

  test('says which range is used up and where', async () => {
    const range = await freeRow(1);
    await listenWithin(server(), {}, range);
    await expect(listenWithin(server(), {}, range)).rejects.toThrow(
      new RegExp(`every port of ${range.first}-${range.last} \\(--port-range\\) is in use on .+; widen the range`, 'u'),
    );
  });

  test('takes a port of the system where there is no range', async () => {
    const made = server();
    await listenWithin(made, {}, null);
    expect(portOf(made)).toBeGreaterThan(0);
  });
});

test('the launcher in a Slurm job and agents that look for addresses listen within the range', async () => {
  const range = await freeRow(2);
  const launcher = await LinkServer.listen({
    secret: Buffer.alloc(SECRET_BYTES),
    identities: new Set(['a']),
    onLink: () => undefined,
    portRange: range,
  });
  const probe = new ReachProbe('job', 'a', range);
  const answer = await probe.answer({ type: 'listen' });
  const ports = [launcher.port, answer.type === 'listening' ? answer.port : 0];
  launcher.close();
  probe.close();
  expect(ports.toSorted((one, other) => one - other)).toEqual([range.first, range.last]);
});

test('native code finds free ports within the range, and says that there are too few', async () => {
  const range = await freeRow(2);
  const native = loadNative();
  expect(native.freePorts(2, range.first, range.last).toSorted((one, other) => one - other)).toEqual([
    range.first,
    range.last,
  ]);
  expect(() => native.freePorts(3, range.first, range.last)).toThrow(
    `no port of ${range.first}-${range.last} (--port-range) is free; widen the range`,
  );
});

const ports = (first: number, last: number, simulated: object | null = null) => ({
  portRange: { first, last },
  simulated,
});

describe('a range that is too small', () => {
  const machine = {
    hostName: 'head',
    isOwn: () => false,
    userName: () => 'me',
    readFile: (content: string) => content,
  };
  const mapOf = (hostList: string) => {
    const programs = [
      { argv: ['p'], ranks: null, ranksPerHost: null, exports: [], workingDirectory: null, hostList: null },
    ];
    const wish = { mapBy: { by: 'slot' }, rankBy: null, oversubscribe: false, programs } as const;
    return mapRanks(allocateHosts({ hostfile: null, hostList }, machine), wish, null);
  };
  test('is refused with the host, the number that it needs and a range that has it', () => {
    expect(tooFewPorts(ports(20_000, 20_015), mapOf('a:2,b:9'))).toEqual({
      type: 'usage',
      message:
        '--port-range 20000-20015 has 16 ports, and b needs at least 18: for each of its 9 ranks one for each communicator and one for each NIC',
      remedy: 'write a range of 18 ports or more, such as --port-range 20000-20017',
    });
  });

  test('near the last port is answered with a range that ends there', () => {
    expect(tooFewPorts(ports(65_535, 65_535), mapOf('a:1,b:1'))).toMatchObject({
      remedy: 'write a range of 2 ports or more, such as --port-range 65534-65535',
    });
  });

  test('counts the ranks of all hosts that one machine plays', () => {
    expect(tooFewPorts(ports(20_000, 20_003), mapOf('a:2,b:2'))).toBeNull();
    expect(tooFewPorts(ports(20_000, 20_005, {}), mapOf('a:2,b:2'))).toMatchObject({
      message: expect.stringContaining('this machine needs at least 8: for each of its 4 ranks'),
    });
  });

  test('is no matter where all ranks are of one host, or nobody has asked for a range', () => {
    expect(tooFewPorts(ports(20_000, 20_000), mapOf('a:8'))).toBeNull();
    expect(tooFewPorts({ portRange: null, simulated: null }, mapOf('a:8,b:8'))).toBeNull();
    expect(tooFewPorts(ports(20_000, 20_000), null)).toBeNull();
  });
});
