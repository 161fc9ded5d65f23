/** What an agent or a launcher accepts from the other side: sizes of messages, and connections before authentication. */
import { Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  parseChildEnd,
  parseChildOrder,
  parseChildProblem,
  parseHello,
  parseInvitation,
  parseOrder,
  parseOrderVersion,
  parseReachQuestion,
  parseReport,
} from '../../control/link/validate.ts';
import { WaitingRoom } from '../../control/link/waiting-room.ts';
import { ProtocolError } from '../../control/messages/protocol-error.ts';

const text = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
const letters = (length: number): string => 'x'.repeat(length);
const many = <Item>(length: number, item: Item): Item[] => Array.from({ length }, () => item);

const program = { argv: ['true'], workingDirectory: '/', workingDirectoryGiven: false, environment: {} };
const placement = { hostIndex: 0, hostCount: 1, rankCount: 1, programs: [program], ranks: [] };
const order = {
  schemaVersion: 1,
  version: '1',
  jobId: letters(64),
  epoch: 0,
  maxRestarts: 0,
  stays: false,
  hostName: '',
  placement,
  uniqueId: '',
  leaseMs: 1,
  heartbeatMs: 1,
  outputCredit: 0,
  plansLocally: true,
  installation: '',
  interfaces: null,
  addressFamily: null,
  verbs: true,
  topology: false,
  hangAfterMs: 0,
  preload: false,
  portRange: null,
  busyGpus: 'report',
  outerJob: null,
};
const cores = [{ cpus: [0], numa: 0 }];
const nic = {
  name: 'eth0',
  address: '10.0.0.1',
  prefixLength: 0,
  speedMbps: 0,
  pciPath: null,
  isVirtual: false,
  isNamed: false,
};
const hello = {
  schemaVersion: 1,
  version: '1',
  jobId: 'j',
  hostName: 'h',
  bootId: 'b',
  clockId: letters(1000),
  pid: 1,
  cores: 1,
  gpus: 0,
  topology: { cores, gpus: [] },
  nodeVersion: '',
  addresses: [],
  nics: [nic],
  launcherAddress: null,
  preflight: {},
  verbs: null,
  hardware: { processor: null, gpu: null, driver: null },
  time: 0,
  freePort: 0,
};
const gid = { index: 0, gid: letters(1000), version: null };
const verbsPort = {
  card: letters(1000),
  port: 255,
  linkLayer: 'Ethernet',
  speedMbps: 0,
  mtu: 0,
  pciPath: letters(1000),
  firmware: letters(1000),
  gids: [{ ...gid, version: 1 }, { ...gid, version: 2 }, gid],
};
const shortPort = { ...verbsPort, card: 'a', pciPath: null, firmware: '', gids: [] };
const verbsWith = (changes: object) => ({ ...hello, verbs: { ports: [{ ...verbsPort, ...changes }], problem: null } });
const waiting = {
  jobRank: -1,
  rank: 0,
  operation: 0,
  inside: true,
  collective: letters(40),
  bytes: 0,
  waitedMs: 0,
  hangs: true,
  byKernel: false,
  progressUs: 0,
  calls: null,
  waitsFor: { rank: 0, nics: { own: letters(64), peer: letters(64) } },
};
const sleeping = (changes: object) => ({
  jobRank: 0,
  pid: 0,
  gpu: null,
  state: 'uninterruptible',
  cpuMs: 0,
  throttled: null,
  sleep: { call: letters(100), file: letters(300), channel: letters(100), ...changes },
});
const communicator = { communicator: '0123456789abcdef', epoch: 0, size: 0, ranks: [waiting] };
const where = {
  reading: 0,
  atMs: 0,
  monotonicUs: 0,
  stolenMs: null,
  health: {
    nics: many(64, { nic: letters(64), counters: { [letters(40)]: 1 } }),
    gpus: many(64, {
      address: letters(40),
      clock: 0,
      maxClock: null,
      throttleReasons: 0,
      corrected: 0,
      uncorrected: 0,
      pcieWidth: 0,
      maxPcieWidth: null,
    }),
  },
  arrivals: [],
  edges: [],
  communicators: [communicator],
  processes: [sleeping({})],
  omitted: 0,
};
const whereOne = (changes: object) => ({
  ...where,
  communicators: [{ ...communicator, ranks: [{ ...waiting, ...changes }] }],
});
const xid = {
  type: 'xid',
  code: 0,
  gpu: 0,
  address: letters(40),
  ranks: many(10_000, 0),
  pid: null,
  message: letters(400),
  time: 0,
};
const target = { host: 'h', addresses: [], port: 65_535, thorough: true, sources: null };
const holder = { pid: 0, program: letters(100), user: letters(100), used: null };
const gpus = (changes: object) => [{ gpu: 0, total: 0, free: 0, holders: [{ ...holder, ...changes }] }];
const invitation = { schemaVersion: 1, jobId: 'j', secret: 'AA==', addresses: many(1000, letters(100)), port: 65_535 };

type Parse = (payload: Uint8Array) => unknown;

const padded = (bytes: number): Buffer => Buffer.from(`{"problem":null}${' '.repeat(bytes - 16)}`);

describe('messages', () => {
  test.each<[Parse, object]>([
    [parseOrder, order],
    [parseOrder, { ...order, placement: null }],
    [parseHello, hello],
    [parseHello, { ...hello, version: letters(1000), addresses: many(1000, letters(100)), nics: many(1000, nic) }],
    [parseHello, { ...hello, preflight: { [letters(40)]: letters(1000) } }],
    [parseHello, { ...hello, hardware: { ...hello.hardware, gpu: letters(200) } }],
    [parseHello, { ...hello, nics: [{ ...nic, address: letters(100), pciPath: letters(1000) }] }],
    [parseHello, { ...hello, verbs: { ports: [verbsPort], problem: letters(10_000) } }],
    [parseHello, { ...hello, verbs: { ports: many(256, shortPort), problem: null } }],
    [parseHello, verbsWith({ linkLayer: 'InfiniBand', gids: many(64, { ...gid, gid: 'fe80::1' }) })],
    [parseReport, xid],
    [parseReport, { type: 'rankPositions', where }],
    [parseReport, { type: 'notice', message: letters(10_000) }],
    [parseReport, { type: 'listening', port: 65_535 }],
    [parseReport, { type: 'reached', found: many(10, []) }],
    [parseReport, { type: 'rank-gpu', rank: 0, gpu: { index: 0, address: letters(40) } }],
    [parseReport, { type: 'gpu-memory', gpus: gpus({}) }],
    [parseReport, { type: 'asked-to-end', signal: 'SIGINT' }],
    [parseReachQuestion, { type: 'probe', targets: many(10, target) }],
    [parseInvitation, invitation],
    [parseChildOrder, { words: ['x'] }],
    [parseChildProblem, { problem: null }],
    [parseChildEnd, { status: null, stderr: letters(10_000) }],
  ])('case %#: a message at the limits is accepted as it is', (parse, message) => {
    expect(parse(text(message))).toEqual(message);
  });

  test.each<[Parse, object, string]>([
    [parseOrder, { ...order, jobId: letters(65) }, 'order: jobId: '],
    [parseOrder, { ...order, leaseMs: 0 }, 'order: leaseMs: '],
    [parseOrder, { ...order, heartbeatMs: 0 }, 'order: heartbeatMs: '],
    [parseOrder, { ...order, epoch: -1 }, 'order: epoch: '],
    [parseOrder, { ...order, epoch: 0.5 }, 'order: epoch: '],
    [parseOrder, { ...order, schemaVersion: 2 }, 'order: schemaVersion: '],
    [
      parseOrder,
      { ...order, placement: { ...placement, programs: [{ ...program, argv: [] }] } },
      'order: placement.programs.0.argv: ',
    ],
    [parseHello, { ...hello, version: letters(1001) }, 'hello: version: '],
    [parseHello, { ...hello, topology: { cores: [], gpus: [] } }, 'hello: topology.cores: '],
    [
      parseHello,
      { ...hello, topology: { cores: [{ cpus: [], numa: 0 }], gpus: [] } },
      'hello: topology.cores.0.cpus: ',
    ],
    [parseHello, { ...hello, addresses: many(1001, 'a') }, 'hello: addresses: '],
    [parseHello, { ...hello, addresses: [letters(101)] }, 'hello: addresses.0: '],
    [parseHello, { ...hello, nics: many(1001, nic) }, 'hello: nics: '],
    [parseHello, { ...hello, nics: [{ ...nic, address: letters(101) }] }, 'hello: nics.0.address: '],
    [parseHello, { ...hello, nics: [{ ...nic, pciPath: letters(1001) }] }, 'hello: nics.0.pciPath: '],
    [parseHello, { ...hello, preflight: { [letters(41)]: '' } }, `hello: preflight.${letters(41)}: `],
    [parseHello, { ...hello, preflight: { a: letters(1001) } }, 'hello: preflight.a: '],
    [parseHello, { ...hello, hardware: { ...hello.hardware, processor: letters(201) } }, 'hello: hardware.processor: '],
    [parseHello, { ...hello, verbs: undefined }, 'hello: verbs: '],
    [parseHello, { ...hello, verbs: { ports: many(257, shortPort), problem: null } }, 'hello: verbs.ports: '],
    [parseHello, { ...hello, verbs: { ports: [], problem: letters(10_001) } }, 'hello: verbs.problem: '],
    [parseHello, verbsWith({ card: letters(1001) }), 'hello: verbs.ports.0.card: '],
    [parseHello, verbsWith({ port: -1 }), 'hello: verbs.ports.0.port: '],
    [parseHello, verbsWith({ port: 256 }), 'hello: verbs.ports.0.port: '],
    [parseHello, verbsWith({ linkLayer: 'Unspecified' }), 'hello: verbs.ports.0.linkLayer: '],
    [parseHello, verbsWith({ speedMbps: 0.5 }), 'hello: verbs.ports.0.speedMbps: '],
    [parseHello, verbsWith({ mtu: -1 }), 'hello: verbs.ports.0.mtu: '],
    [parseHello, verbsWith({ pciPath: letters(1001) }), 'hello: verbs.ports.0.pciPath: '],
    [parseHello, verbsWith({ firmware: letters(1001) }), 'hello: verbs.ports.0.firmware: '],
    [parseHello, verbsWith({ gids: many(65, gid) }), 'hello: verbs.ports.0.gids: '],
    [parseHello, verbsWith({ gids: [{ ...gid, gid: letters(1001) }] }), 'hello: verbs.ports.0.gids.0.gid: '],
    [parseHello, verbsWith({ gids: [{ ...gid, version: 3 }] }), 'hello: verbs.ports.0.gids.0.version: '],
    [parseHello, verbsWith({ gids: [{ ...gid, index: -1 }] }), 'hello: verbs.ports.0.gids.0.index: '],
    [parseReport, { ...xid, address: letters(41) }, 'report: address: '],
    [parseReport, { ...xid, ranks: many(10_001, 0) }, 'report: ranks: '],
    [parseReport, { ...xid, message: letters(401) }, 'report: message: '],
    [parseReport, { type: 'notice', message: letters(10_001) }, 'report: message: '],
    [parseReport, { type: 'listening', port: 65_536 }, 'report: port: '],
    [parseReport, { type: 'reached', found: many(11, []) }, 'report: found: '],
    [parseReport, { type: 'rank-gpu', rank: 0, gpu: { index: 0, address: letters(41) } }, 'report: gpu.address: '],
    [parseReport, { type: 'gpu-memory', gpus: gpus({ program: letters(101) }) }, 'report: gpus.0.holders.0.program: '],
    [parseReport, { type: 'gpu-memory', gpus: gpus({ user: letters(101) }) }, 'report: gpus.0.holders.0.user: '],
    [
      parseReport,
      { type: 'rankPositions', where: whereOne({ jobRank: -2 }) },
      'report: where.communicators.0.ranks.0.jobRank: ',
    ],
    [
      parseReport,
      { type: 'rankPositions', where: { ...where, health: { nics: many(65, { nic: 'a', counters: {} }), gpus: [] } } },
      'report: where.health.nics: ',
    ],
    [
      parseReport,
      { type: 'rankPositions', where: { ...where, processes: [sleeping({ channel: letters(101) })] } },
      'report: where.processes.0.sleep.channel: ',
    ],
    [
      parseReport,
      { type: 'rankPositions', where: whereOne({ collective: letters(41) }) },
      'report: where.communicators.0.ranks.0.collective: ',
    ],
    [
      parseReport,
      {
        type: 'rankPositions',
        where: whereOne({ waitsFor: { rank: 0, nics: { own: letters(65), peer: '' } } }),
      },
      'report: where.communicators.0.ranks.0.waitsFor.nics.own: ',
    ],
    [parseReachQuestion, { type: 'probe', targets: many(11, target) }, 'reach: targets: '],
    [parseReachQuestion, { type: 'probe', targets: [{ ...target, port: 65_536 }] }, 'reach: targets.0.port: '],
    [parseInvitation, { ...invitation, secret: '?' }, 'invitation: secret: '],
    [parseChildOrder, { words: [] }, 'child order: words: '],
    [parseChildEnd, { status: -1, stderr: '' }, 'end of a child agent: status: '],
  ])('case %#: a message beyond a limit is refused with the name of the field', (parse, message, expected) => {
    expect(() => parse(text(message))).toThrow(expected);
    expect(() => parse(text(message))).toThrow(ProtocolError);
  });

  test('the message names its first problem only', () => {
    expect(() => parseChildEnd(text({ status: 'a', stderr: 1 }))).toThrow(
      /^end of a child agent: status: Invalid type: [^:]+$/,
    );
    expect(() => parseChildOrder(text([]))).toThrow(/^child order: words: /);
    expect(() => parseChildOrder(text(1))).toThrow(/^child order: the message: /);
  });

  test('an agent may send a mebibyte, and the launcher any payload', () => {
    expect(parseChildProblem(padded(2 ** 20))).toEqual({ problem: null });
    expect(() => parseChildProblem(padded(2 ** 20 + 1))).toThrow(
      'end of a child agent: 1048577 bytes; 1048576 is the most',
    );
    expect(parseOrderVersion(Buffer.from(`{"version":"1"}${' '.repeat(2 ** 20)}`))).toBe('1');
  });
});

const closed = (sockets: readonly Socket[]): number[] =>
  sockets.flatMap((socket, index) => (socket.destroyed ? [index] : []));

function connection(remoteAddress: string, remotePort: number): Socket {
  return Object.defineProperties(new Socket(), {
    remoteAddress: { value: remoteAddress },
    remotePort: { value: remotePort },
  });
}

/** Which connections are closed when these have come, where two may wait. */
function closedOf(...addresses: string[]): number[] {
  const room = new WaitingRoom(2, 1000);
  const sockets = addresses.map((address, port) => connection(address, port));
  for (const socket of sockets) room.enter(socket);
  return closed(sockets);
}

describe('connections before authentication', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test.each<[string, string[], number[]]>([
    ['nobody is closed while there is room', ['10.0.0.1', '10.0.0.1'], []],
    ['the oldest of the address with the most is closed', ['10.0.0.2', '10.0.0.1', '10.0.0.1'], [1]],
    ['the oldest of all is closed where all addresses have one', ['10.0.0.1', '10.0.0.2', '10.0.0.3'], [0]],
    ['IPv4 in IPv6 counts by address', ['::ffff:10.0.0.1', '::ffff:10.0.0.2', '::ffff:10.0.0.2'], [1]],
    ['a /64 network is one', ['2001:db8:0:2::1', '2001:db8:0:1::1', '2001:db8:0:1:5::2'], [1]],
    ['a /64 network is one with zeros in it', ['2001:db8::1', '2001:db8:0:1::1', '2001:db8::1:0:0:2'], [0]],
    ['a full address belongs to its network', ['fd00::9', 'fd00:1:2:3:4:5:6:7', 'fd00:1:2:3::7'], [1]],
    ['leading zeros count', ['fe80::9', '::1', '::2'], [1]],
    ['the tail of an address fills from the right', ['fd00::9', '1:2::3:4:5:6:7', '1:2:0:3::'], [1]],
  ])('%s', (_, addresses, expected) => {
    expect(closedOf(...addresses)).toEqual(expected);
  });

  test('a connection that does not authenticate in time is closed', () => {
    const room = new WaitingRoom(2, 1000);
    const [one, other] = [connection('a', 1), connection('a', 2)];
    room.enter(one);
    room.enter(other);
    room.leave('a 1');
    room.leave('a 3');
    vi.advanceTimersByTime(999);
    expect(closed([one, other])).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(closed([one, other])).toEqual([1]);
  });

  test('a connection that has gone makes room', () => {
    const room = new WaitingRoom(2, 1000);
    const sockets = [1, 2, 3, 4].map((port) => connection(port < 3 ? 'a' : 'b', port));
    const [first, second, third, fourth] = sockets;
    for (const socket of [first, second]) if (socket !== undefined) room.enter(socket);
    first?.emit('close');
    if (third !== undefined) room.enter(third);
    expect(closed(sockets)).toEqual([]);
    if (fourth !== undefined) room.enter(fourth);
    expect(closed(sockets)).toEqual([2]);
  });
});
