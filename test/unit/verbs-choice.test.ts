/** Which InfiniBand or RoCE ports a communicator uses, and by which of their GIDs. */
import { describe, expect, test } from 'vitest';
import type { HostVerbs, HostVerbsPort } from '../../control/messages/nic.ts';
import { UnplannableError } from '../../control/planner/input/check.ts';
import type { Environment } from '../../control/planner/input/variables.ts';
import { chooseVerbs } from '../../control/planner/network/verbs.ts';

type Gids = HostVerbsPort['gids'];

const [LINK_LOCAL, IPV4, IPV6] = ['fe80::1', '::ffff:10.8.0.1', 'fd00::1'];
/** As mlx5 has them: each address first of version 1, then of version 2. */
const ROCE: Gids = [LINK_LOCAL, IPV4, IPV6].flatMap((gid, index) => [
  { index: 2 * index, gid, version: 1 },
  { index: 2 * index + 1, gid, version: 2 },
]);

/** `mlx5_0:2`, on Ethernet. */
function port(name: string, changes: Partial<HostVerbsPort> = {}): HostVerbsPort {
  const [card = '', number = '1'] = name.split(':');
  return {
    card,
    port: Number(number),
    linkLayer: 'Ethernet',
    speedMbps: 400_000,
    mtu: 4096,
    pciPath: null,
    firmware: '28.39',
    gids: ROCE,
    ...changes,
  };
}

function infiniBand(name: string, ...gids: readonly string[]): HostVerbsPort {
  const own = gids.length === 0 ? ['fe80::aa'] : gids;
  return port(name, {
    linkLayer: 'InfiniBand',
    gids: own.map((gid, index) => ({ index, gid, version: null })),
  });
}

const withPorts = (...ports: readonly (HostVerbsPort | string)[]): HostVerbs => ({
  ports: ports.map((one) => (typeof one === 'string' ? port(one) : one)),
  problem: null,
});

/** Hosts a, b …; the ports of each as `card:port`, or the reason. */
function chosen(hosts: readonly (HostVerbs | null)[], environment: Environment = {}): readonly string[] | string {
  const named = hosts.map((verbs, index) => ({ name: 'abc'[index] ?? '', verbs }));
  const found = chooseVerbs(named, environment);
  if (typeof found === 'string') return found;
  return found.nics.map((nics) => nics.map((nic) => `${nic.name}:${nic.port}`).join(' '));
}

/** Of two hosts with that port, the GID of the first one's, or the reason. */
function gidOf(one: HostVerbsPort, environment: Environment = {}): string | undefined {
  const found = chooseVerbs(
    ['a', 'b'].map((name) => ({ name, verbs: withPorts(one) })),
    environment,
  );
  return typeof found === 'string' ? found : found.nics[0]?.[0]?.address;
}

describe('whether InfiniBand is used at all', () => {
  const both = [withPorts('mlx5_0'), withPorts('mlx5_0')];

  test.each<[Environment, readonly string[] | string]>([
    [{}, ['mlx5_0:1', 'mlx5_0:1']],
    [{ NCCL_IB_DISABLE: '0' }, ['mlx5_0:1', 'mlx5_0:1']],
    [{ NCCL_IB_DISABLE: '' }, ['mlx5_0:1', 'mlx5_0:1']],
    [{ NCCL_IB_DISABLE: '1' }, 'NCCL_IB_DISABLE=1'],
    [{ NCCL_IB_DISABLE: '-1' }, 'NCCL_IB_DISABLE=-1'],
    [{ NCCL_NET: 'Socket' }, 'NCCL_NET=Socket'],
    [{ NCCL_NET: 'socket' }, 'NCCL_NET=Socket'],
    [{ NCCL_NET: 'IB' }, ['mlx5_0:1', 'mlx5_0:1']],
    [{ NCCL_NET: 'ib', NCCL_IB_DISABLE: '1' }, 'NCCL_IB_DISABLE=1'],
  ])('hosts that have ports use by %j the network %j', (environment, expected) => {
    expect(chosen(both, environment)).toEqual(expected);
  });

  test.each<[readonly (HostVerbs | null)[], string]>([
    [[withPorts('mlx5_0'), null], 'b did not say which InfiniBand devices it has'],
    [[withPorts('mlx5_0'), { ports: [], problem: 'no port is active' }], 'b: no port is active'],
    [
      [
        { ports: [], problem: 'no library' },
        { ports: [], problem: 'no port is active' },
      ],
      'a: no library',
    ],
    [
      [withPorts(infiniBand('mlx5_0')), withPorts('mlx5_0')],
      'b has no active InfiniBand port, a has no active RoCE port',
    ],
  ])('case %#: a host that cannot be reached so is named', (hosts, reason) => {
    expect(chosen(hosts)).toBe(reason);
  });

  test('NCCL_IB_HCA may leave one kind of ports', () => {
    const mixed = withPorts('mlx5_0', infiniBand('mlx5_1'));
    expect(chosen([mixed, mixed], { NCCL_IB_HCA: '=mlx5_1' })).toEqual(['mlx5_1:1', 'mlx5_1:1']);
    expect(chosen([mixed, mixed], { NCCL_IB_HCA: '^=mlx5_1' })).toEqual(['mlx5_0:1', 'mlx5_0:1']);
  });
});

const ib = (name: string, speedMbps: number): HostVerbsPort => ({ ...infiniBand(name), speedMbps });
const roce = (name: string, speedMbps: number): HostVerbsPort => port(name, { speedMbps });

describe('hosts that have both InfiniBand and RoCE ports', () => {
  test.each<[string, readonly HostVerbs[], readonly string[], string]>([
    [
      'the faster one of two kinds that all have',
      [withPorts(ib('i0', 400_000), roce('e0', 100_000)), withPorts(ib('i1', 400_000), roce('e1', 100_000))],
      ['i0:1', 'i1:1'],
      'a has 1 active InfiniBand port; a leaves out e0:1; b leaves out e1:1: InfiniBand is faster',
    ],
    [
      'RoCE where its ports together are faster on every host',
      [
        withPorts(ib('i0', 200_000), roce('e0', 200_000), roce('e2', 200_000)),
        withPorts(ib('i1', 200_000), roce('e1', 200_000), roce('e3', 200_000)),
      ],
      ['e0:1 e2:1', 'e1:1 e3:1'],
      'a has 2 active RoCE ports; a leaves out i0:1; b leaves out i1:1: RoCE is faster',
    ],
    [
      'InfiniBand where one host has slow RoCE ports only',
      [withPorts(ib('i0', 200_000), roce('e0', 400_000)), withPorts(ib('i1', 200_000), roce('e1', 25_000))],
      ['i0:1', 'i1:1'],
      'a has 1 active InfiniBand port; a leaves out e0:1; b leaves out e1:1: InfiniBand is faster',
    ],
    [
      'InfiniBand of two kinds that are equally fast',
      [withPorts(roce('e0', 400_000), ib('i0', 400_000)), withPorts(roce('e1', 400_000), ib('i1', 400_000))],
      ['i0:1', 'i1:1'],
      'a has 1 active InfiniBand port; a leaves out e0:1; b leaves out e1:1: InfiniBand is as fast',
    ],
    [
      'the only kind that all have, though another one is faster',
      [withPorts(ib('i0', 400_000), roce('e0', 25_000)), withPorts(roce('e1', 25_000))],
      ['e0:1', 'e1:1'],
      'a has 1 active RoCE port; a leaves out i0:1: not all hosts have InfiniBand',
    ],
  ])('use %s, and say what they leave out', (_, hosts, ports, reason) => {
    expect(chosen(hosts)).toEqual(ports);
    const named = hosts.map((verbs, index) => ({ name: 'abc'[index] ?? '', verbs }));
    expect(chooseVerbs(named, {})).toMatchObject({ reason });
  });

  test('a host whose ports have no GID of the wanted kind does not count with them', () => {
    const hosts = [
      withPorts(ib('i0', 100_000), port('e0', { gids: [] })),
      withPorts(ib('i1', 100_000), roce('e1', 400_000)),
    ];
    expect(chosen(hosts)).toEqual(['i0:1', 'i1:1']);
  });
});

describe('which ports hosts use', () => {
  const all = withPorts('mlx5_0:1', 'mlx5_0:2', 'mlx5_1:1', 'mlx5_10:1', 'rxe0:1');

  test.each([
    ['mlx5_1', 'mlx5_1:1 mlx5_10:1'],
    ['=mlx5_1', 'mlx5_1:1'],
    ['mlx5_1:1', 'mlx5_1:1 mlx5_10:1'],
    ['=mlx5_0:2', 'mlx5_0:2'],
    ['mlx5_0:2,rxe', 'mlx5_0:2 rxe0:1'],
    ['^mlx5_1', 'mlx5_0:1 mlx5_0:2 rxe0:1'],
    ['^=mlx5_1', 'mlx5_0:1 mlx5_0:2 mlx5_10:1 rxe0:1'],
    ['^=mlx5_0:1,mlx5_1', 'mlx5_0:2 mlx5_10:1 rxe0:1'],
    [' =rxe0 ', 'rxe0:1'],
    ['', 'mlx5_0:1 mlx5_0:2 mlx5_1:1 mlx5_10:1 rxe0:1'],
  ])('NCCL_IB_HCA=%j admits %s', (list, ports) => {
    expect(chosen([all, all], { NCCL_IB_HCA: list })).toEqual([ports, ports]);
  });

  test('a list that names no port of a host is quoted, with the ports that it has', () => {
    const hosts = [withPorts('mlx5_0'), withPorts('mlx5_1', 'mlx5_2:2')];
    expect(chosen(hosts, { NCCL_IB_HCA: 'mlx5_0' })).toBe(
      'b: NCCL_IB_HCA=mlx5_0 names no active port; it has mlx5_1:1, mlx5_2:2',
    );
  });

  test('hosts with unlike numbers of ports use as many as the one with fewest', () => {
    const hosts = [withPorts('a0', 'a1', 'a2'), withPorts('b0', 'b1'), withPorts('c0', 'c1', 'c2')];
    expect(chosen(hosts)).toEqual(['a0:1 a1:1', 'b0:1 b1:1', 'c0:1 c1:1']);
    const found = chooseVerbs(
      hosts.map((verbs, index) => ({ name: `n${index}`, verbs })),
      {},
    );
    expect(found).toMatchObject({ reason: 'n1 has 2 active RoCE ports' });
  });

  test('ports of InfiniBand are called so', () => {
    const two = withPorts(infiniBand('mlx5_0'), infiniBand('mlx5_1'));
    const hosts = ['a', 'b'].map((name) => ({ name, verbs: two }));
    expect(chooseVerbs(hosts, {})).toMatchObject({ reason: 'a has 2 active InfiniBand ports' });
  });

  test('rails follow the PCI addresses of cards, then their names and ports', () => {
    const hosts = [
      withPorts(
        port('mlx5_0', { pciPath: '/sys/devices/pci0000:80/0000:81:00.0' }),
        port('mlx5_9', { pciPath: '/sys/devices/pci0000:00/0000:01:00.0' }),
      ),
      withPorts('sia:10', 'sia:2', 'b'),
    ];
    expect(chosen(hosts)).toEqual(['mlx5_9:1 mlx5_0:1', 'b:1 sia:2']);
  });

  test('a port is planned as it is, and no GPUDirect is decided for it', () => {
    const pciPath = '/sys/devices/pci0000:00/0000:01:00.0';
    const hosts = ['a', 'b'].map((name) => ({ name, verbs: withPorts(port('mlx5_3:2', { pciPath })) }));
    const found = chooseVerbs(hosts, {});
    expect(typeof found === 'string' ? found : found.nics[1]).toEqual([
      {
        name: 'mlx5_3',
        port: 2,
        address: IPV4,
        speedMbps: 400_000,
        pciPath,
        gpuDirect: false,
        gpuDirectReason: 'not decided',
        gpuPaths: [],
      },
    ]);
  });
});

describe('the GID of a RoCE port', () => {
  const one = port('mlx5_0');
  const gids = (...all: readonly (readonly [number, string, 1 | 2 | null])[]): HostVerbsPort =>
    port('mlx5_0', { gids: all.map(([index, gid, version]) => ({ index, gid, version })) });

  test('the first address of IPv4 is taken, and NCCL_IB_ADDR_FAMILY wishes for another family', () => {
    expect(gidOf(one)).toBe(IPV4);
    expect(gidOf(one, { NCCL_IB_ADDR_FAMILY: 'AF_INET' })).toBe(IPV4);
    expect(gidOf(one, { NCCL_IB_ADDR_FAMILY: 'AF_INET6' })).toBe(IPV6);
  });

  test.each<[string, readonly (readonly [number, string, 1 | 2 | null])[], Environment, string]>([
    [
      'version 2 before version 1',
      [
        [0, '::ffff:10.0.0.1', 1],
        [1, 'fd00::2', 2],
      ],
      {},
      'fd00::2',
    ],
    [
      'version 1 where it is wanted',
      [
        [0, '::ffff:10.0.0.2', 2],
        [1, 'fd00::1', 1],
      ],
      { NCCL_IB_ROCE_VERSION_NUM: '1' },
      'fd00::1',
    ],
    [
      'an unknown version counts as the wanted one',
      [
        [0, '::ffff:10.0.0.1', 1],
        [1, 'fd00::2', null],
      ],
      {},
      'fd00::2',
    ],
    [
      'any address before a link-local one',
      [
        [0, 'fe80::1', 2],
        [1, 'fd00::1', 1],
      ],
      {},
      'fd00::1',
    ],
    [
      'a link-local address of IPv4 comes last, too',
      [
        [0, '::ffff:169.254.3.4', 2],
        [1, 'fd00::1', 1],
      ],
      {},
      'fd00::1',
    ],
    [
      'link-local ones where there is no other',
      [
        [0, 'fe80::1', 1],
        [1, 'fe80::1:1', 2],
      ],
      {},
      'fe80::1:1',
    ],
    [
      'the lower index of equals',
      [
        [3, '::ffff:10.0.0.1', 2],
        [5, '::ffff:10.1.0.1', 2],
      ],
      {},
      '::ffff:10.0.0.1',
    ],
  ])('%s', (_, all, environment, expected) => {
    expect(gidOf(gids(...all), environment)).toBe(expected);
  });

  test('NCCL_IB_GID_INDEX stands above all rules, and -1 leaves them', () => {
    expect(gidOf(one, { NCCL_IB_GID_INDEX: '0', NCCL_IB_ADDR_FAMILY: 'AF_INET6' })).toBe(LINK_LOCAL);
    expect(gidOf(one, { NCCL_IB_GID_INDEX: '5' })).toBe(IPV6);
    expect(gidOf(one, { NCCL_IB_GID_INDEX: '-1' })).toBe(IPV4);
  });

  test('a port without the wanted GID is not used, and the variables are named', () => {
    const wanted =
      'that NCCL_IB_GID_INDEX, NCCL_IB_ADDR_FAMILY, NCCL_IB_ADDR_RANGE and NCCL_IB_ROCE_VERSION_NUM ask for';
    expect(gidOf(one, { NCCL_IB_GID_INDEX: '6' })).toBe(`a: no GID of mlx5_0:1 is of the kind ${wanted}`);
    expect(gidOf(port('mlx5_0:2', { gids: [] }))).toBe(`a: no GID of mlx5_0:2 is of the kind ${wanted}`);
    const ports = withPorts(port('mlx5_0', { gids: [] }), port('mlx5_1'));
    expect(chosen([ports, ports])).toEqual(['mlx5_1:1', 'mlx5_1:1']);
  });

  test.each<[Environment, string]>([
    [{ NCCL_IB_ADDR_RANGE: '10.9.0.0/16' }, '::ffff:10.9.3.4'],
    [{ NCCL_IB_ADDR_RANGE: '10.8.0.0/15' }, IPV4],
    [{ NCCL_IB_ADDR_RANGE: '10.9.3.4/32' }, '::ffff:10.9.3.4'],
    [{ NCCL_IB_ADDR_RANGE: '0.0.0.0/0' }, IPV4],
    [{ NCCL_IB_ADDR_RANGE: '::/0' }, IPV4],
    [{ NCCL_IB_ADDR_RANGE: 'fd00:1::/32', NCCL_IB_ADDR_FAMILY: 'AF_INET6' }, 'fd00:1::7'],
    [{ NCCL_IB_ADDR_RANGE: 'fe80::/10', NCCL_IB_ADDR_FAMILY: 'AF_INET6' }, LINK_LOCAL],
    [{ NCCL_IB_ADDR_RANGE: '10.9.0.0/16', NCCL_IB_GID_INDEX: '1' }, LINK_LOCAL],
  ])('%j takes %s', (environment, expected) => {
    const more = ['::ffff:10.9.3.4', 'fd00:1::7'].map((gid, index) => ({ index: 6 + index, gid, version: 2 as const }));
    expect(gidOf(port('mlx5_0', { gids: [...ROCE, ...more] }), environment)).toBe(expected);
  });

  test('a port without an address in NCCL_IB_ADDR_RANGE is not used', () => {
    expect(gidOf(one, { NCCL_IB_ADDR_RANGE: '192.168.0.0/16' })).toMatch(
      /^a: no GID of mlx5_0:1 is of the kind that .*NCCL_IB_ADDR_RANGE/u,
    );
  });

  test('InfiniBand ports heed neither family nor version', () => {
    const environment = { NCCL_IB_ADDR_FAMILY: 'AF_INET6', NCCL_IB_ROCE_VERSION_NUM: '1' };
    expect(gidOf(infiniBand('mlx5_0', 'fe80::aa', 'fd00::aa'), environment)).toBe('fe80::aa');
  });
});

describe('the GID of an InfiniBand port', () => {
  const [first, flid, other] = ['fe80::aa', 'fec0:0:7:1::aa', 'fec0:0:8:1::aa'];

  test.each<[readonly string[], Environment, string]>([
    [[first], {}, first],
    [[first, 'fec0:0:0:1::aa'], {}, first],
    [[first, flid], {}, flid],
    [[first, flid, other], { NCCL_IB_ROUTABLE_FLID_GID_INDEX: '2' }, other],
    [[first, flid], { NCCL_IB_ROUTABLE_FLID_GID_INDEX: '2' }, first],
    [[first, flid], { NCCL_IB_ROUTABLE_FLID_GID_INDEX: '0' }, first],
    [[first, flid], { NCCL_IB_GID_INDEX: '0' }, first],
    [[first, flid], { NCCL_IB_GID_INDEX: '1' }, flid],
  ])('a port with GIDs %j and variables %j is reached by %s', (gids, environment, expected) => {
    expect(gidOf(infiniBand('mlx5_0', ...gids), environment)).toBe(expected);
  });
});

describe('variables that mean nothing', () => {
  test.each([
    [{ NCCL_IB_DISABLE: 'yes' }, 'NCCL_IB_DISABLE=yes: a whole number is wanted'],
    [{ NCCL_IB_GID_INDEX: 'two' }, 'NCCL_IB_GID_INDEX=two: a whole number is wanted'],
    [{ NCCL_IB_ROCE_VERSION_NUM: '3' }, 'NCCL_IB_ROCE_VERSION_NUM=3: a whole number from 1 to 2 is wanted'],
    [{ NCCL_IB_ROCE_VERSION_NUM: '0' }, 'NCCL_IB_ROCE_VERSION_NUM=0: a whole number from 1 to 2 is wanted'],
    [
      { NCCL_IB_ADDR_RANGE: '10.0.0.0' },
      'NCCL_IB_ADDR_RANGE=10.0.0.0: a range like 10.1.0.0/16 or fd00::/64 is wanted',
    ],
    [
      { NCCL_IB_ADDR_RANGE: '10.0.0.0/33' },
      'NCCL_IB_ADDR_RANGE=10.0.0.0/33: a range like 10.1.0.0/16 or fd00::/64 is wanted',
    ],
    [
      { NCCL_IB_ADDR_RANGE: 'fd00::/8' },
      'NCCL_IB_ADDR_RANGE=fd00::/8: NCCL_IB_ADDR_FAMILY wants addresses of IPv4; set it to AF_INET6',
    ],
    [{ NCCL_IB_ADDR_FAMILY: 'IPv4' }, 'NCCL_IB_ADDR_FAMILY=IPv4: AF_INET or AF_INET6 is wanted'],
  ])('%j is refused with what is wanted', (environment, sentence) => {
    expect(() => gidOf(port('mlx5_0'), environment)).toThrow(new UnplannableError(sentence));
  });

  test.each(['-1', '256'])('NCCL_IB_ROUTABLE_FLID_GID_INDEX=%s is out of range', (value) => {
    expect(() => gidOf(infiniBand('mlx5_0'), { NCCL_IB_ROUTABLE_FLID_GID_INDEX: value })).toThrow(
      new UnplannableError(`NCCL_IB_ROUTABLE_FLID_GID_INDEX=${value}: a whole number from 0 to 255 is wanted`),
    );
  });
});
