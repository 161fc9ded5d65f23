/** What a host is, from its files and what NVML, CUDA and verbs say. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { elementsOf, everyElement } from '../../control/topology/element.ts';
import type { Element } from '../../control/topology/element.ts';
import { writeXml } from '../../control/topology/write-xml.ts';
import { assemble } from '../../worker/topology/assemble.ts';
import { detectTopology } from '../../worker/topology/detect.ts';
import type { Probes } from '../../worker/topology/detect.ts';
import { gpuFacts } from '../../worker/topology/gpu-facts.ts';
import { hostHash } from '../../worker/topology/host-hash.ts';
import { netFacts } from '../../worker/topology/net-facts.ts';
import { FakeSysfs } from '../rig/sysfs.ts';
import { sysfsFromJson } from '../rig/sysfs-from-json.ts';
import { describeMachines, machinePath, sharedPath } from '../rig/topologies.ts';

const noLibrary = 'lib.so: cannot open shared object file';
const nothing: Probes = { nvmlGpus: () => noLibrary, cudaGpus: () => noLibrary, verbsPorts: () => noLibrary };

/** `remote`: what all its links lead to. */
const nvmlGpu = (index: number, busId: string, remote: string | null = null, computeCapability = 90) => ({
  busId,
  index,
  computeCapability,
  links: Array.from({ length: 18 }, () => ({ active: remote !== null, remote })),
  c2c: null,
});
const cudaGpu = (busId: string) => ({ busId, computeCapability: 90, gpuDirect: true });
const port = (name: string, number = 1, more: object = {}) => ({
  name,
  port: number,
  active: true,
  ethernet: false,
  guid: '0x1234',
  activeWidth: 2,
  activeSpeed: 128,
  maxQueuePairs: 131_072,
  firmware: '28.39.1002',
  lid: 1,
  activeMtu: 5,
  gids: [],
  ...more,
});

const attributes = (system: Element, name: string) =>
  Array.from(everyElement(system))
    .filter((one) => one.name === name)
    .map((one) => Object.fromEntries(one.attributes));

const tags = (system: Element, name: string) =>
  Array.from(everyElement(system))
    .filter((one) => one.name === name)
    .map((one) => Array.from(one.attributes, ([key, value]) => `${key}=${value}`).join(' '));

describeMachines('a virtual machine with four H200', () => {
  test("the detected topology equals NCCL's dump", async () => {
    using sysfs = sysfsFromJson(sharedPath('h200x4_vm.sysfs.json'));
    sysfs.link('sys/class/net/eth0/device', 'sys/devices/pci0000:00/0000:00:03.0/virtio2');
    sysfs.link('sys/devices/pci0000:00/0000:00:03.0/virtio2/subsystem', 'sys/bus/virtio');
    sysfs.write('sys/bus/virtio/uevent', '');
    for (const [name, content] of [
      ['speed', '-1'],
      ['operstate', 'up'],
      ['ifindex', '2'],
    ] as const)
      sysfs.write(`sys/class/net/eth0/${name}`, content);
    const addresses = [6, 7, 8, 9].map((number) => `00000000:00:0${number}.0`);
    const probes: Probes = {
      ...nothing,
      nvmlGpus: () => addresses.map((busId, index) => nvmlGpu(index, busId, 'FFFFFFF:FF:FF.0')),
      cudaGpus: () => addresses.map(cudaGpu),
    };
    const system = assemble(sysfs.root, {
      gpus: (await gpuFacts(probes)).facts,
      nets: netFacts(probes, sysfs.root, {}).facts,
      hostHash: '0xa3da812091cc5fc4',
      architecture: 'x86_64',
      rankOf: ({ index }) => index,
    });
    const dump = readFileSync(machinePath('h200x4_vm'), 'utf8');
    expect(writeXml(system)).toBe(dump.replace(/^<!--.*-->\n/u, ''));
  });
});

describe('a machine without GPUs', () => {
  test('the topology contains processors and nets, and the notes say what is missing', async () => {
    using sysfs = new FakeSysfs();
    sysfs.write('sys/devices/system/node/node0/cpulist', '0-3');
    sysfs.write('sys/devices/system/node/node0/cpumap', 'f');
    sysfs.write('sys/devices/system/node/node1/cpulist', '4-7');
    sysfs.write('sys/devices/system/node/node2/cpulist', ''); // memory alone
    sysfs.write('proc/cpuinfo', 'vendor_id\t:   Shanghai  \ncpu family\t: 7\nmodel\t\t: 91\n\nvendor_id\t: X');
    const { system, notes } = await detectTopology(nothing, {
      root: sysfs.root,
      environment: { NCCL_HOSTID: 'a' },
      architecture: 'x64',
    });
    expect(tags(system, 'cpu')).toEqual([
      'host_hash=0x2b5c4 numaid=0 affinity=f arch=x86_64 vendor=  Shanghai   familyid=7 modelid=91',
      'host_hash=0x2b5c4 numaid=1 arch=x86_64 vendor=  Shanghai   familyid=7 modelid=91',
    ]);
    expect(notes).toEqual([
      `no GPUs: ${noLibrary}, and ${noLibrary}`,
      `no InfiniBand: ${noLibrary}`,
      'no network: no interface is up but loopback',
    ]);
  });

  test('a machine without any information has one processor', async () => {
    using sysfs = new FakeSysfs();
    const { system } = await detectTopology(nothing, { root: sysfs.root, environment: {}, architecture: 'arm64' });
    expect(attributes(system, 'cpu')).toEqual([expect.objectContaining({ numaid: '-1', arch: 'arm64' })]);
  });
});

describe('GPUs', () => {
  test('the GPUs of CUDA have no NVLinks without NVML', async () => {
    expect(await gpuFacts({ ...nothing, cudaGpus: () => [cudaGpu('0000:1B:00.0')] })).toEqual({
      facts: [{ busId: '0000:1b:00.0', index: 0, computeCapability: 90, gpuDirect: true, links: [], c2c: null }],
      notes: [`no NVLinks: ${noLibrary}; the GPUs are those that CUDA shows, in its order`],
    });
  });

  test('GPUs that CUDA does not show have no GPUDirect, and a note says so', async () => {
    const seen = [nvmlGpu(1, '00000000:2B:00.0'), nvmlGpu(0, '00000000:1B:00.0')];
    const { facts, notes } = await gpuFacts({ nvmlGpus: () => seen, cudaGpus: () => [cudaGpu('0000:1b:00.0')] });
    expect(facts.map(({ index, gpuDirect }) => [index, gpuDirect])).toEqual([
      [0, true],
      [1, false],
    ]);
    expect(notes).toEqual(['GPUDirect of GPUs 1 is taken for missing: CUDA does not show them']);
  });

  test.each([
    [53, 0],
    [60, 4],
    [70, 6],
    [80, 12],
    [90, 18],
    [100, 18],
  ])('a GPU of compute capability %i has %i NVLinks', async (generation, count) => {
    const nvmlGpus = () => [nvmlGpu(0, '00000000:1B:00.0', '00000000:2B:00.0', generation)];
    expect((await gpuFacts({ ...nothing, nvmlGpus })).facts[0]?.links).toHaveLength(count);
  });

  test('a GPU has a rank only if one uses it, and inactive links do not count', async () => {
    using sysfs = new FakeSysfs();
    sysfs.addPci('sys/devices/pci0000:00/0000:00:05.0', { class: '0x068000' });
    const gpu = nvmlGpu(0, '00000000:1B:00.0', '00000000:00:05.0');
    const links = gpu.links.map((link, index) => ({ ...link, active: index % 2 === 0 }));
    const nvmlGpus = () => [{ ...gpu, links }, nvmlGpu(1, '00000000:2B:00.0', '00000000:1B:00.0')];
    const ranks = new Map([[0, 7]]);
    const { system } = await detectTopology(
      { ...nothing, nvmlGpus },
      {
        root: sysfs.root,
        environment: {},
        rankOf: ({ index }) => ranks.get(index),
      },
    );
    expect(attributes(system, 'gpu')).toEqual([
      { dev: '0', sm: '90', rank: '7', gdr: '0' },
      { dev: '1', sm: '90', gdr: '0' },
    ]);
    expect(attributes(system, 'nvlink')).toEqual([
      { target: '0000:00:05.0', count: '9', tclass: '0x068000' },
      { target: '0000:1b:00.0', count: '18', tclass: '0x068000' }, // not to be seen
    ]);
    expect(attributes(system, 'pci')[0]).toMatchObject({ class: '0x03', link_speed: '', link_width: '0' });
  });
});

function withInterfaces(interfaces: Readonly<Record<string, Readonly<Record<string, string>>>>): FakeSysfs {
  const sysfs = new FakeSysfs();
  for (const [index, [name, { device, master, ...files }]] of Object.entries(interfaces).entries()) {
    const at = `sys/class/net/${name}`;
    for (const [file, content] of Object.entries({ operstate: 'up', ifindex: String(index), ...files }))
      sysfs.write(`${at}/${file}`, content);
    if (device !== undefined) sysfs.link(`${at}/device`, device);
    if (master !== undefined) sysfs.link(`${at}/master`, `sys/class/net/${master}`);
  }
  sysfs.addPci('sys/devices/pci0000:00/0000:00:03.0', { class: '0x020000', numa_node: '0' });
  return sysfs;
}

const card = 'sys/devices/pci0000:00/0000:00:03.0';
const usual = {
  lo: { operstate: 'unknown' },
  docker0: {},
  veth1: {},
  eth1: { device: card, speed: '25000' },
  eth0: { device: card, speed: '-1' },
  eth2: { device: card, operstate: 'down' },
};

const namesOf = (sysfs: FakeSysfs, chosen?: string) =>
  netFacts(nothing, sysfs.root, { NCCL_SOCKET_IFNAME: chosen }).facts.map(({ name }) => name);

const below = (system: Element) => elementsOf(system, 'cpu').flatMap((cpu) => elementsOf(cpu).map(({ name }) => name));

describe('sockets', () => {
  test.each<[string | undefined, string[]]>([
    [undefined, ['eth1', 'eth0']],
    ['eth', ['eth1', 'eth0']],
    ['=eth', []],
    ['=eth0,docker0', ['docker0', 'eth0']],
    ['^docker,lo', ['veth1', 'eth1', 'eth0']],
    ['^=eth1', ['lo', 'docker0', 'veth1', 'eth0']],
    ['eth2', []],
  ])('NCCL_SOCKET_IFNAME=%s selects the expected interfaces', (chosen, names) => {
    using sysfs = withInterfaces(usual);
    expect(namesOf(sysfs, chosen)).toEqual(names);
  });

  test('an interface without a device counts in a container', () => {
    using sysfs = withInterfaces({ lo: {}, eth0: {} });
    expect(namesOf(sysfs)).toEqual(['eth0']);
  });

  test('bonded interfaces count as one, and InfiniBand comes first', () => {
    const bonded = { bond0: { 'bonding/mode': '' }, eth0: { device: card, master: 'bond0' } };
    using sysfs = withInterfaces(bonded);
    expect(namesOf(sysfs)).toEqual(['bond0']);
    using more = withInterfaces({ ...bonded, ib0: { device: card } });
    expect(namesOf(more)).toEqual(['ib0']);
  });

  test('an interface stands below its card or below the first processor', async () => {
    using sysfs = withInterfaces(usual);
    sysfs.write('sys/devices/system/node/node0/cpulist', '0');
    const options = { root: sysfs.root, environment: {} };
    expect(below((await detectTopology(nothing, options)).system)).toEqual(['pci']);
    expect(
      below((await detectTopology(nothing, { ...options, environment: { NCCL_SOCKET_IFNAME: 'veth1' } })).system),
    ).toEqual(['nic']);
    expect(tags((await detectTopology(nothing, options)).system, 'net')[0]).toBe(
      'name=eth1 dev=0 latency=0 speed=25000 port=0 guid=0x0 maxconn=65536 gdr=0',
    );
  });
});

describe('InfiniBand and RoCE', () => {
  test.each<[string, object, Record<string, string>, string[]]>([
    ['InfiniBand precedes sockets', {}, {}, ['mlx5_0', 'mlx5_1']],
    ['inactive ports do not count', { active: false }, {}, ['eth1', 'eth0']],
    ['NCCL_IB_DISABLE=1 removes InfiniBand', {}, { NCCL_IB_DISABLE: '1' }, ['eth1', 'eth0']],
    ['NCCL_IB_DISABLE=0 keeps InfiniBand', {}, { NCCL_IB_DISABLE: '0' }, ['mlx5_0', 'mlx5_1']],
    ['NCCL_NET=Socket removes InfiniBand', {}, { NCCL_NET: 'Socket' }, ['eth1', 'eth0']],
    ['NCCL_IB_HCA selects a port', {}, { NCCL_IB_HCA: 'mlx5_1:1' }, ['mlx5_1']],
    ['NCCL_IB_HCA with another port selects nothing', {}, { NCCL_IB_HCA: '=mlx5_1:2' }, ['eth1', 'eth0']],
    ['NCCL_IB_HCA with ^ excludes a card', {}, { NCCL_IB_HCA: '^mlx5_1' }, ['mlx5_0']],
  ])('the selection of nets follows the ports and variables: %s', (_name, more, environment, names) => {
    using sysfs = withInterfaces(usual);
    const verbsPorts = () => [port('mlx5_0', 1, more), port('mlx5_1', 1, more)];
    const { facts, notes } = netFacts({ verbsPorts }, sysfs.root, environment);
    expect(facts.map(({ name }) => name)).toEqual(names);
    expect(notes).toEqual(names[0] === 'eth1' ? [expect.stringMatching(/^no InfiniBand: /u)] : []);
  });

  test('ports of one card share its device, and nvidia_peermem enables GPUDirect', async () => {
    using sysfs = new FakeSysfs();
    for (const number of [0, 1]) {
      sysfs.addPci(`sys/devices/pci0000:80/0000:81:00.${number}`, { class: '0x020700', numa_node: '1' });
      sysfs.link(`sys/class/infiniband/mlx5_${number}/device`, `sys/devices/pci0000:80/0000:81:00.${number}`);
    }
    sysfs.write('sys/class/infiniband/mlx5_1/ports/1/rate', '800 Gb/sec (4X XDR)');
    sysfs.write('sys/module/nvidia_peermem/version', '');
    const ports = [port('mlx5_0'), port('mlx5_1', 1, { activeSpeed: 0 })];
    const { system } = await detectTopology(
      { ...nothing, verbsPorts: () => ports },
      { root: sysfs.root, environment: {} },
    );
    expect(tags(system, 'net')).toEqual([
      'name=mlx5_0 dev=0 latency=0 speed=400000 port=1 guid=0x1234 maxconn=131072 gdr=1',
      'name=mlx5_1 dev=1 latency=0 speed=800000 port=2 guid=0x1234 maxconn=131072 gdr=1',
    ]);
    expect(attributes(system, 'pci').map(({ busid }) => busid)).toEqual(['0000:81:00.0']);
  });

  test('a note reports InfiniBand that the kernel has and the library does not show', () => {
    using sysfs = new FakeSysfs();
    sysfs.write('sys/class/infiniband/mlx5_0/x', '');
    expect(netFacts(nothing, sysfs.root, {}).notes[0]).toBe(
      `no InfiniBand: ${noLibrary}, though the kernel has mlx5_0`,
    );
  });
});

test('hostHash hashes host name and boot id', () => {
  using sysfs = new FakeSysfs();
  sysfs.write('proc/sys/kernel/random/boot_id', 'a');
  expect(hostHash(sysfs.root, {}, '')).toBe('0x2b5c4');
  expect(hostHash(sysfs.root, {}, 'a'.repeat(40))).toMatch(/^0x[0-9a-f]{1,16}$/u);
});
