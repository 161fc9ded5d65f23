import { describe, expect, test } from 'vitest';
import type { HostNic } from '../../control/messages/nic.ts';
import { UnplannableError } from '../../control/planner/input/check.ts';
import { subnetOf } from '../../control/planner/network/addresses.ts';
import { chooseNics } from '../../control/planner/network/nics.ts';
import { socketsOf } from '../../control/planner/network/sockets.ts';

/** `eth0 10.0.0.1/24 10000`, with `virtual` or `named` behind it. */
function nic(text: string): HostNic {
  const [, name = '', address = '', prefix, speed, words = ''] = /^(\S+) ([^/]+)\/(\d+) (\d+)(.*)$/u.exec(text) ?? [];
  return {
    name,
    address,
    prefixLength: Number(prefix),
    speedMbps: Number(speed),
    pciPath: null,
    isVirtual: words.includes('virtual'),
    isNamed: words.includes('named'),
  };
}

/** The first NIC's address is the one by which the host is reached. */
function host(name: string, ...nics: readonly string[]): Parameters<typeof chooseNics>[0][number] {
  const all = nics.map((text) => nic(text));
  return { name, address: all[0]?.address ?? '', nics: all };
}

function chosen(...hosts: Parameters<typeof chooseNics>[0]): string[] {
  return chooseNics(hosts).nics.map((nics) => nics.map(({ name, address }) => `${name} ${address}`).join(', '));
}

describe('the choice of NICs', () => {
  test.each<readonly [string, Parameters<typeof chooseNics>[0], readonly string[], RegExp]>([
    [
      'one interface per host',
      [host('a', 'eth0 10.0.0.1/24 10000'), host('b', 'ens3 10.0.0.2/24 10000')],
      ['eth0 10.0.0.1', 'ens3 10.0.0.2'],
      /a has no other NIC/,
    ],
    [
      'two rails of equal speed',
      [
        host('a', 'eth0 10.0.0.1/24 10000', 'eth1 10.1.0.1/24 10000'),
        host('b', 'eth1 10.0.0.2/24 10000', 'eth0 10.1.0.2/24 10000'),
      ],
      ['eth0 10.0.0.1, eth1 10.1.0.1', 'eth1 10.0.0.2, eth0 10.1.0.2'],
      /one in each of 2 subnets/,
    ],
    [
      'a slower second interface',
      [
        host('a', 'eth0 10.0.0.1/24 10000', 'eth1 10.1.0.1/24 1000'),
        host('b', 'eth0 10.0.0.2/24 10000', 'eth1 10.1.0.2/24 1000'),
      ],
      ['eth0 10.0.0.1', 'eth0 10.0.0.2'],
      /no other NIC of the same speed/,
    ],
    [
      'a second interface that one host lacks',
      [
        host('a', 'eth0 10.0.0.1/24 10000', 'eth1 10.1.0.1/24 10000'),
        host('b', 'eth0 10.0.0.2/24 10000', 'eth1 10.2.0.2/24 10000'),
      ],
      ['eth0 10.0.0.1', 'eth0 10.0.0.2'],
      /b has no NIC of the same speed in the subnet of eth1/,
    ],
    [
      'two interfaces in one subnet',
      [
        host('a', 'eth0 10.0.0.1/16 10000', 'eth1 10.0.1.1/16 10000'),
        host('b', 'eth0 10.0.0.2/16 10000', 'eth1 10.0.1.2/16 10000'),
      ],
      ['eth0 10.0.0.1', 'eth0 10.0.0.2'],
      /no other NIC/,
    ],
    [
      'bridges with the same address on every host',
      [
        host('a', 'eth0 10.0.0.1/24 10000 virtual', 'br0 172.17.0.1/16 10000 virtual'),
        host('b', 'eth0 10.0.0.2/24 10000 virtual', 'br0 172.17.0.1/16 10000 virtual'),
      ],
      ['eth0 10.0.0.1', 'eth0 10.0.0.2'],
      /br0 has an address that several hosts have/,
    ],
    [
      'a bridge beside a real interface',
      [
        host('a', 'eth0 10.0.0.1/24 10000', 'br0 172.17.0.1/16 10000 virtual'),
        host('b', 'eth0 10.0.0.2/24 10000', 'br0 172.17.0.2/16 10000 virtual'),
      ],
      ['eth0 10.0.0.1', 'eth0 10.0.0.2'],
      /no other NIC/,
    ],
    [
      'unknown speeds that nobody asked for',
      [host('a', 'eth0 10.0.0.1/24 0', 'eth1 10.1.0.1/24 0'), host('b', 'eth0 10.0.0.2/24 0', 'eth1 10.1.0.2/24 0')],
      ['eth0 10.0.0.1', 'eth0 10.0.0.2'],
      /no other NIC/,
    ],
    [
      'unknown speeds that the user named',
      [
        host('a', 'eth0 10.0.0.1/24 0 named', 'eth1 10.1.0.1/24 0 named'),
        host('b', 'eth0 10.0.0.2/24 0 named', 'eth1 10.1.0.2/24 0 named'),
      ],
      ['eth0 10.0.0.1, eth1 10.1.0.1', 'eth0 10.0.0.2, eth1 10.1.0.2'],
      /2 subnets/,
    ],
    [
      'hosts that are reached in different subnets',
      [
        host('a', 'eth0 10.0.0.1/24 10000', 'eth1 10.1.0.1/24 10000'),
        host('b', 'eth1 10.1.0.2/24 10000', 'eth0 10.0.0.2/24 10000'),
      ],
      ['eth0 10.0.0.1', 'eth1 10.1.0.2'],
      /b is reached at 10\.1\.0\.2, outside the others' subnet/,
    ],
    [
      'two rails of IPv6',
      [
        host('a', 'eth0 fd00:0::1/64 10000', 'eth1 fd00:0:0:1::1/64 10000', 'eth1 10.0.0.1/24 10000'),
        host('b', 'eth0 fd00::2/64 10000', 'eth1 fd00:0:0:1::2/64 10000'),
      ],
      ['eth0 fd00:0::1, eth1 fd00:0:0:1::1', 'eth0 fd00::2, eth1 fd00:0:0:1::2'],
      /2 subnets/,
    ],
    [
      'hosts of which only the address is known',
      [
        { name: 'a', address: '10.0.0.1' },
        { name: 'b', address: '10.0.0.2', nics: [nic('eth0 10.9.0.2/24 1000')] },
      ],
      ['10.0.0.1 10.0.0.1', '10.0.0.2 10.0.0.2'],
      /a is reached at 10\.0\.0\.1/,
    ],
    [
      'hosts reached by different families, of which both have IPv6',
      [host('a', 'eth0 10.0.0.1/24 10000', 'eth0 fd00::1/64 10000'), host('b', 'eth0 fd00::2/64 10000')],
      ['eth0 fd00::1', 'eth0 fd00::2'],
      /no other NIC/,
    ],
  ])('%s', (_title, hosts, expected, reason) => {
    expect(chosen(...hosts)).toEqual(expected);
    expect(chooseNics(hosts).reason).toMatch(reason);
  });

  test('hosts without a common address family are named', () => {
    const hosts = [host('a', 'eth0 10.0.0.1/24 10000'), host('b', 'eth0 fd00::2/64 10000')];
    expect(() => chooseNics(hosts)).toThrow(UnplannableError);
    expect(() => chooseNics(hosts)).toThrow(/a is reached at 10\.0\.0\.1, b at fd00::2/);
  });
});

test.each([
  ['10.1.2.3', 16, '10.1.255.255', true],
  ['10.1.2.3', 16, '10.2.2.3', false],
  ['10.1.2.3', 31, '10.1.2.2', true],
  ['10.1.2.3', 31, '10.1.2.4', false],
  ['fd00::1:2', 112, 'fd00:0:0:0:0:0:1:ffff', true],
  ['fd00::1', 64, 'fd00:0:0:1::1', false],
  ['::ffff:10.0.0.1', 120, '::ffff:10.0.0.9', true],
  ['fe80::1%eth0', 64, 'fe80::2%ens3', true],
  ['::', 128, '::0', true],
  ['1::', 16, '1:2:3:4:5:6:7:8', true],
])('%s/%i and %s are in one subnet: %s', (one, prefixLength, other, isSame) => {
  expect(subnetOf(one, prefixLength) === subnetOf(other, prefixLength)).toBe(isSame);
});

describe('sockets and threads of a connection', () => {
  test.each([
    [0, 64, {}, 1, 0],
    [10_000, 64, {}, 1, 0],
    [25_000, 64, {}, 1, 0],
    [40_000, 64, {}, 2, 2],
    [100_000, 64, {}, 4, 4],
    [400_000, 64, {}, 16, 16],
    [100_000, 3, {}, 2, 2],
    [100_000, 1, {}, 1, 0],
    [0, 1, { NCCL_SOCKET_NTHREADS: '4', NCCL_NSOCKS_PERTHREAD: '2' }, 8, 4],
    [0, 1, { NCCL_SOCKET_NTHREADS: '16', NCCL_NSOCKS_PERTHREAD: '64' }, 63, 16],
    [0, 1, { NCCL_NSOCKS_PERTHREAD: '3' }, 3, 0],
    [100_000, 64, { NCCL_SOCKET_NTHREADS: '0' }, 1, 0],
    [100_000, 64, { NCCL_SOCKET_NTHREADS: '-2', NCCL_NSOCKS_PERTHREAD: '-2' }, 4, 4],
  ])(
    'a NIC of %i Mbit/s with %d cores per rank and %o has %i sockets and %i threads',
    (speedMbps, coresPerRank, environment, sockets, threads) => {
      expect(socketsOf({ speedMbps, coresPerRank, onGpus: false }, environment)).toEqual({
        sockets,
        socketThreads: threads,
      });
    },
  );

  test.each([
    [32, {}, 1, 8],
    [3, {}, 1, 1],
    [1, {}, 1, 0],
    [32, { NCCL_SOCKET_NTHREADS: '2', NCCL_NSOCKS_PERTHREAD: '2' }, 4, 2],
  ])(
    'GPUs with %d cores per rank and %o have %i sockets and %i threads',
    (coresPerRank, environment, sockets, threads) => {
      const facts = { speedMbps: 0, coresPerRank, onGpus: true };
      expect(socketsOf(facts, environment)).toEqual({ sockets, socketThreads: threads });
    },
  );

  test('a number that means nothing is refused', () => {
    const facts = { speedMbps: 0, coresPerRank: 1, onGpus: false };
    expect(() => socketsOf(facts, { NCCL_SOCKET_NTHREADS: '17' })).toThrow(
      /NCCL_SOCKET_NTHREADS=17: a whole number from 0/,
    );
    expect(() => socketsOf(facts, { NCCL_NSOCKS_PERTHREAD: 'many' })).toThrow(UnplannableError);
  });
});
