/** How a host's files and libraries become facts: ports of cards, interfaces, GPUs and names of hardware. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { CudaGpu, NvmlGpu, VerbsPort } from '../../worker/engine/native.ts';
import { gpuFacts } from '../../worker/topology/gpu-facts.ts';
import { allGpus, visibleGpus } from '../../worker/topology/gpus.ts';
import { admits, parseNameList } from '../../control/name-list.ts';
import { hardwareNames, hostHardware } from '../../worker/topology/hardware-names.ts';
import { netFacts } from '../../worker/topology/net-facts.ts';
import { reportedSpeed, socketNets } from '../../worker/topology/sockets.ts';
import { parseCpuList } from '../../worker/topology/system-files.ts';
import { verbsNets } from '../../worker/topology/verbs.ts';
import { FakeSysfs } from '../rig/sysfs.ts';

// The hosts of these tests have GPUs, which the suite would hide.
beforeEach(() => void vi.stubEnv('CUDA_VISIBLE_DEVICES', undefined));
afterEach(() => void vi.unstubAllEnvs());

const port = (changes: Partial<VerbsPort> = {}): VerbsPort => ({
  name: 'mlx5_0',
  port: 1,
  active: true,
  ethernet: false,
  guid: '0x1',
  activeWidth: 2,
  activeSpeed: 32,
  maxQueuePairs: 100,
  firmware: '28.39.1002',
  lid: 1,
  activeMtu: 5,
  gids: [],
  ...changes,
});

describe('ports of cards', () => {
  test.each([
    [1, 1, 2500],
    [2, 1, 10_000],
    [4, 1, 20_000],
    [8, 1, 30_000],
    [16, 1, 5000],
    [2, 2, 20_000],
    [2, 4, 40_000],
    [2, 8, 40_000],
    [2, 16, 56_000],
    [2, 32, 100_000],
    [2, 64, 200_000],
    [2, 128, 400_000],
    [2, 256, 800_000],
    [6, 96, 100_000],
    [32, 1, 800_000],
    [0, 1, 800_000],
    [2, 0, 800_000],
    [2, 512, 800_000],
  ])('width %i and speed %i make %i Mbit/s', (activeWidth, activeSpeed, speed) => {
    using host = new FakeSysfs();
    host.write('sys/class/infiniband/mlx5_0/ports/1/rate', '800 Gb/sec (4X XDR)');
    expect(verbsNets(host.root, [port({ activeWidth, activeSpeed })], undefined)[0]?.speed).toBe(speed);
  });

  test('a speed that nobody states is 0', () => {
    using host = new FakeSysfs();
    expect(verbsNets(host.root, [port({ activeSpeed: 0 })], undefined)).toEqual([
      {
        name: 'mlx5_0',
        path: null,
        port: 1,
        speed: 0,
        latency: '0',
        guid: '0x1',
        maxConnections: 100,
        gpuDirect: false,
      },
    ]);
  });

  test('ports of one card have different numbers, and NCCL_IB_HCA chooses among those that are active', () => {
    using host = new FakeSysfs();
    for (const [name, address] of [
      ['mlx5_0', '0000:1b:00.0'],
      ['mlx5_1', '0000:1b:00.1'],
      ['mlx5_2', '0000:2b:00.0'],
    ] as const) {
      host.addPci(`sys/devices/pci0000:00/${address}`, { class: '0x020700' });
      host.link(`sys/class/infiniband/${name}/device`, `sys/devices/pci0000:00/${address}`);
    }
    const ports = ['mlx5_0', 'mlx5_1', 'mlx5_2'].map((name) => port({ name }));
    const found = (chosen?: string, all: readonly VerbsPort[] = ports): (readonly [string, number, string | null])[] =>
      verbsNets(host.root, all, chosen).map((net) => [net.name, net.port, net.path] as const);
    const card = 'sys/devices/pci0000:00/0000:1b:00.0';
    expect(found()).toEqual([
      ['mlx5_0', 1, card],
      ['mlx5_1', 2, card],
      ['mlx5_2', 1, 'sys/devices/pci0000:00/0000:2b:00.0'],
    ]);
    expect(found('mlx5_1:1,mlx5_2:2')).toEqual([['mlx5_1', 1, card]]);
    expect(found(undefined, [port({ active: false }), port({ name: 'mlx5_1' })])).toEqual([['mlx5_1', 1, card]]);
  });

  test.each([
    ['sys/module/nvidia_peermem/version', true],
    ['sys/kernel/mm/memory_peers/nv_mem/version', true],
    ['sys/kernel/mm/memory_peers/nv_mem_nc/version', true],
    ['sys/module/nv_peer_mem/version', true],
    ['sys/module/nvidia/version', false],
  ])('the file %s means that cards reach the memory of GPUs: %s', (file, gpuDirect) => {
    using host = new FakeSysfs();
    host.write(file, '1');
    expect(verbsNets(host.root, [port()], undefined)[0]?.gpuDirect).toBe(gpuDirect);
  });

  test.each<[string, string | VerbsPort[], Record<string, string>, string[]]>([
    ['active', [port()], {}, []],
    ['none', [], {}, ['no InfiniBand: there are no cards', 'no network: no interface is up but loopback']],
    [
      'down',
      [port({ active: false })],
      { NCCL_IB_DISABLE: '0' },
      ['no InfiniBand: no port is active', 'no network: no interface is up but loopback'],
    ],
    [
      'not chosen',
      [port()],
      { NCCL_IB_HCA: 'ib', NCCL_SOCKET_IFNAME: 'eth' },
      [
        'no InfiniBand: NCCL_IB_HCA=ib names no port that is active',
        'no network: NCCL_SOCKET_IFNAME=eth names no interface that is up',
      ],
    ],
    [
      'disabled',
      [port()],
      { NCCL_IB_DISABLE: '1' },
      ['no InfiniBand: NCCL_IB_DISABLE=1', 'no network: no interface is up but loopback'],
    ],
    [
      'sockets',
      [port()],
      { NCCL_NET: 'Socket' },
      ['no InfiniBand: NCCL_NET=Socket', 'no network: no interface is up but loopback'],
    ],
    [
      'no library',
      'no libibverbs',
      {},
      ['no InfiniBand: no libibverbs', 'no network: no interface is up but loopback'],
    ],
  ])('cards that are %s have their notes', (_, ports, environment, notes) => {
    using host = new FakeSysfs();
    expect(netFacts({ verbsPorts: () => ports }, host.root, environment).notes).toEqual(notes);
  });

  test('cards of the kernel that the library does not show are named', () => {
    using host = new FakeSysfs();
    for (const name of ['mlx5_1', 'mlx5_0']) host.write(`sys/class/infiniband/${name}/node_type`, '1');
    expect(netFacts({ verbsPorts: () => 'no libibverbs' }, host.root, {}).notes[0]).toBe(
      'no InfiniBand: no libibverbs, though the kernel has mlx5_0, mlx5_1',
    );
  });
});

function withInterfaces(states: Readonly<Record<string, string>>): FakeSysfs {
  const host = new FakeSysfs();
  Object.entries(states).forEach(([name, state], index) => {
    host.write(`sys/class/net/${name}/operstate`, state);
    host.write(`sys/class/net/${name}/ifindex`, String(index + 1));
  });
  return host;
}

describe('interfaces as nets', () => {
  test('those that are up come in the order of the kernel, without bridges and loopback', () => {
    using host = withInterfaces({
      lo: 'unknown',
      docker0: 'up',
      virbr0: 'up',
      veth2: 'up',
      veth1: 'unknown',
      veth0: 'down',
    });
    host.write('sys/class/net/bonding_masters', '');
    host.write('sys/class/net/veth1/speed', '25000');
    host.write('sys/class/net/veth2/speed', '-1');
    expect(
      socketNets(host.root, undefined).map(({ name, speed, guid, port: own }) => [name, speed, guid, own]),
    ).toEqual([
      ['veth2', 10_000, '0x0', 0],
      ['veth1', 25_000, '0x1', 0],
    ]);
    expect(socketNets(host.root, '=lo').map(({ name }) => name)).toEqual(['lo']);
    expect([
      reportedSpeed(host.root, 'veth1'),
      reportedSpeed(host.root, 'veth2'),
      reportedSpeed(host.root, 'x'),
    ]).toEqual([25_000, 0, 0]);
  });

  test('interfaces with the same index come by name', () => {
    using host = new FakeSysfs();
    for (const name of ['b', 'a', 'c']) host.write(`sys/class/net/${name}/operstate`, 'up');
    expect(socketNets(host.root, undefined).map(({ name }) => name)).toEqual(['a', 'b', 'c']);
  });
});

test.each([
  ['eth,ib0', ['eth0', 'eth', 'ib0', 'ib01'], ['ib1', 'lo']],
  ['=eth,ib0', ['eth', 'ib0'], ['eth0', 'ib01']],
  ['^eth', ['ib0'], ['eth0']],
  ['^=eth', ['eth0'], ['eth']],
  [' eth : , x ', ['x1'], ['eth0']],
])('the list %j admits %j and not %j', (text, admitted, refused) => {
  const list = parseNameList(text);
  if (list === null) throw new TypeError('no list');
  expect(admitted.filter((name) => !admits(list, name))).toEqual([]);
  expect(refused.filter((name) => admits(list, name))).toEqual([]);
});

test('a list with ports admits those ports, and what has no port', () => {
  const list = parseNameList('mlx5_0:1,mlx5_1');
  if (list === null) throw new TypeError('no list');
  expect([1, 2, null].map((number) => admits(list, 'mlx5_0', number))).toEqual([true, false, true]);
  expect(admits(list, 'mlx5_1', 2)).toBe(true);
  for (const nothing of [undefined, '', '^', '^=', ' , ', ':1']) expect(parseNameList(nothing)).toBeNull();
});

test.each([
  ['0-3,8', [0, 1, 2, 3, 8]],
  [' 5 , 7-7 ', [5, 7]],
  ['3-1', []],
  ['', []],
  ['a,1-b,123456', []],
])('the list of processors %j is %j', (text, expected) => {
  expect(parseCpuList(text)).toEqual(expected);
});

function withGpus(): FakeSysfs {
  const host = new FakeSysfs();
  for (const [bus, uuid] of [
    ['2b', 'GPU-bb22'],
    ['1b', 'GPU-aa11'],
  ] as const)
    host.write(`proc/driver/nvidia/gpus/0000:${bus}:00.0/information`, `Model: \t\t NVIDIA H100\nGPU UUID: \t ${uuid}`);
  return host;
}

const cuda = (index: number, gpuDirect = true): CudaGpu => ({
  busId: `0000:${index}b:00.0`,
  computeCapability: 90,
  gpuDirect,
});

const nvml = (index: number, computeCapability: number, links = 0): NvmlGpu => ({
  busId: `00000000:${index}B:00.0`,
  index,
  computeCapability,
  links: Array.from({ length: links }, () => ({ active: true, remote: null })),
  c2c: null,
});

describe('GPUs', () => {
  test.each([
    [59, 0],
    [60, 4],
    [69, 4],
    [70, 6],
    [79, 6],
    [80, 12],
    [89, 12],
    [90, 18],
    [100, 18],
  ])('a GPU of compute capability %i has at most %i NVLinks', async (capability, count) => {
    const { facts } = await gpuFacts({ nvmlGpus: () => [nvml(1, capability, 20)], cudaGpus: () => [cuda(1)] });
    expect(facts[0]?.links).toHaveLength(count);
  });

  test('NVML orders the GPUs, and CUDA knows of GPUDirect', async () => {
    const probes = {
      nvmlGpus: () => [nvml(2, 90), nvml(1, 90), nvml(3, 90)],
      cudaGpus: () => [cuda(1), cuda(2, false)],
    };
    const { facts, notes } = await gpuFacts(probes);
    expect(facts.map(({ index, busId, gpuDirect }) => [index, busId, gpuDirect])).toEqual([
      [1, '0000:1b:00.0', true],
      [2, '0000:2b:00.0', false],
      [3, '0000:3b:00.0', false],
    ]);
    expect(notes).toEqual(['GPUDirect of GPUs 3 is taken for missing: CUDA does not show them']);
    expect((await gpuFacts({ nvmlGpus: () => [nvml(1, 90)], cudaGpus: () => 'no CUDA' })).notes).toEqual([
      'GPUDirect of GPUs 1 is taken for missing: no CUDA',
    ]);
    expect(await gpuFacts({ nvmlGpus: () => [], cudaGpus: () => [cuda(1)] })).toEqual({
      facts: [],
      notes: ['no GPUs: NVML sees none'],
    });
    expect((await gpuFacts({ nvmlGpus: () => [nvml(1, 90)], cudaGpus: () => [cuda(1)] })).notes).toEqual([]);
  });

  const [one, two] = [
    { name: '0', index: 0, address: '0000:1b:00.0' },
    { name: '1', index: 1, address: '0000:2b:00.0' },
  ];

  test.each([
    [undefined, [one, two]],
    ['1, 0', [two, one]],
    ['1,2,0', [two]],
    ['', []],
    ['-1', []],
    ['GPU-bb', [{ ...two, name: 'GPU-bb' }]],
    ['GPU-cc,0', []],
    ['MIG-x,0', [{ name: 'MIG-x', index: null, address: null }, one]],
    ['first,0', []],
  ])('CUDA_VISIBLE_DEVICES=%j shows %j', (visible, expected) => {
    using host = withGpus();
    expect(visibleGpus(visible, host.root)).toEqual(expected);
  });

  test('the device files count where the driver has none', () => {
    using host = new FakeSysfs();
    for (const name of ['nvidia0', 'nvidia11', 'nvidiactl', 'nvidia-uvm', 'xnvidia0']) host.write(`dev/${name}`, '');
    expect(allGpus(host.root)).toEqual([null, null]);
    expect(visibleGpus('GPU-aa,1', host.root)).toEqual([
      { name: 'GPU-aa', index: null, address: null },
      { name: '1', index: 1, address: null },
    ]);
    using empty = new FakeSysfs();
    expect([visibleGpus('MIG-x', empty.root), visibleGpus('GPU-a', empty.root), allGpus(empty.root)]).toEqual([
      [],
      [],
      [],
    ]);
  });

  test('processors, GPUs and the driver have names', () => {
    using host = withGpus();
    const names = hardwareNames(host.root);
    expect([names.processor(), names.driver()]).toEqual([null, null]);
    expect([names.gpu('1b000'), names.gpu('1b001'), names.gpu('10001b000')]).toEqual(['NVIDIA H100', null, null]);
    host.write('proc/driver/nvidia/gpus/0a1c:3d:0e.5/information', 'Model: odd');
    expect(names.gpu('a1c3d0e5')).toBe('odd');
    host.write('proc/cpuinfo', 'processor\t: 0\nmodel name\t: Intel X \nmodel name\t: other');
    expect(names.processor()).toBe('Intel X');
    host.write('proc/cpuinfo', 'CPU implementer\t: 0x41\nCPU part\t: 0xd4f');
    expect(names.processor()).toBe('arm 0x41 0xd4f');
    expect(hostHardware(host.root)).toMatchObject({ processor: 'arm 0x41 0xd4f', driver: null });
    using other = withGpus();
    expect(hostHardware(other.root)).toEqual({ processor: null, gpu: 'NVIDIA H100', driver: null });
    using empty = new FakeSysfs();
    expect(hostHardware(empty.root)).toEqual({ processor: null, gpu: null, driver: null });
    host.write('proc/cpuinfo', 'CPU implementer\t: 0x41');
    expect(names.processor()).toBeNull();
    host.write(
      'proc/driver/nvidia/version',
      'NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release',
    );
    expect(names.driver()).toBe('580.65.06');
    host.write('proc/driver/nvidia/version', 'NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.1  Sat');
    expect(names.driver()).toBe('535.1');
  });
});
