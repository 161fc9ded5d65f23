/** What a host tells of its InfiniBand and RoCE ports, from its library and its files. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { VerbsPort } from '../../worker/engine/native.ts';
import { hostVerbs } from '../../worker/topology/host-verbs.ts';
import { FakeSysfs } from '../rig/sysfs.ts';

const port = (changes: Partial<VerbsPort> = {}): VerbsPort => ({
  name: 'mlx5_0',
  port: 1,
  active: true,
  ethernet: true,
  guid: '0x1',
  activeWidth: 2,
  activeSpeed: 128,
  maxQueuePairs: 100,
  firmware: '28.39.1002',
  lid: 1,
  activeMtu: 5,
  gids: [],
  ...changes,
});

/** A host whose kernel has these cards. */
function host(...cards: readonly string[]): FakeSysfs {
  const made = new FakeSysfs();
  for (const card of cards) made.write(`sys/class/infiniband/${card}/ports/1/rate`, '400 Gb/sec (4X NDR)');
  return made;
}

const never = { verbsPorts: (): string => expect.unreachable('the library is not opened') };

beforeEach(() => {
  vi.stubEnv('NCCL_IBVERBS_LIB', undefined);
});
afterEach(() => {
  vi.unstubAllEnvs();
});

describe('why a host has no ports', () => {
  test('the library is opened only where there are cards', () => {
    using without = host();
    expect(hostVerbs(never, without.root)).toEqual({ ports: [], problem: 'the kernel has no InfiniBand devices' });
  });

  test('NCCL_IBVERBS_LIB names a library that is opened without cards, too', () => {
    using without = host();
    vi.stubEnv('NCCL_IBVERBS_LIB', '/opt/libibverbs.so.1');
    expect(hostVerbs({ verbsPorts: () => [port()] }, without.root)).toMatchObject({ problem: null });
    vi.stubEnv('NCCL_IBVERBS_LIB', '');
    expect(hostVerbs(never, without.root).ports).toEqual([]);
  });

  test('a library that is missing is said beside the cards of the kernel', () => {
    using its = host('mlx5_1', 'mlx5_0');
    const why = 'libibverbs.so.1: cannot open shared object file';
    expect(hostVerbs({ verbsPorts: () => why }, its.root)).toEqual({
      ports: [],
      problem: `${why}, though the kernel has mlx5_0, mlx5_1`,
    });
  });

  test('ports that are not active are left out, and may be all', () => {
    using its = host('mlx5_0', 'mlx5_1');
    const down = port({ name: 'mlx5_1', active: false });
    const some = hostVerbs({ verbsPorts: () => [down, port({ port: 2 })] }, its.root);
    expect(some.ports.map(({ card, port: number }) => `${card}:${number}`)).toEqual(['mlx5_0:2']);
    expect(some.problem).toBeNull();
    expect(hostVerbs({ verbsPorts: () => [down] }, its.root)).toEqual({ ports: [], problem: 'no port is active' });
  });
});

describe('what a host tells of a port', () => {
  test('a port has its link, rate, MTU, device and firmware', () => {
    using its = host('mlx5_0');
    its.addPci('sys/devices/pci0000:00/0000:1b:00.0', { class: '0x020700' });
    its.link('sys/class/infiniband/mlx5_0/device', 'sys/devices/pci0000:00/0000:1b:00.0');
    expect(hostVerbs({ verbsPorts: () => [port({ ethernet: false })] }, its.root)).toEqual({
      ports: [
        {
          card: 'mlx5_0',
          port: 1,
          linkLayer: 'InfiniBand',
          speedMbps: 400_000,
          mtu: 4096,
          pciPath: '/sys/devices/pci0000:00/0000:1b:00.0',
          firmware: '28.39.1002',
          gids: [],
        },
      ],
      problem: null,
    });
  });

  test('a card of software has no device, and a speed that only the kernel knows is taken from it', () => {
    using its = host('mlx5_0');
    const { ports } = hostVerbs({ verbsPorts: () => [port({ activeSpeed: 0, activeMtu: 1 })] }, its.root);
    expect(ports).toMatchObject([{ linkLayer: 'Ethernet', speedMbps: 400_000, mtu: 256, pciPath: null }]);
  });

  test('the kernel says of which version of RoCE a GID is, where its file can be read', () => {
    using its = host('mlx5_0');
    its.write('sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/0', 'IB/RoCE v1');
    its.write('sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/1', 'RoCE v2');
    its.write('sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/2', 'RoCE v3');
    its.write('sys/class/infiniband/mlx5_0/ports/2/gid_attrs/types/3', 'RoCE v2');
    const gids = [0, 1, 2, 3].map((index) => ({ index, gid: `fd00::${index}` }));
    const { ports } = hostVerbs({ verbsPorts: () => [port({ gids })] }, its.root);
    expect(ports[0]?.gids).toEqual([
      { index: 0, gid: 'fd00::0', version: 1 },
      { index: 1, gid: 'fd00::1', version: 2 },
      { index: 2, gid: 'fd00::2', version: null },
      { index: 3, gid: 'fd00::3', version: null },
    ]);
  });

  test('a host reports the first 32 GIDs of a long table', () => {
    using its = host('mlx5_0');
    const gids = Array.from({ length: 40 }, (_, index) => ({ index, gid: 'fd00::1' }));
    const { ports } = hostVerbs({ verbsPorts: () => [port({ gids })] }, its.root);
    expect(ports[0]?.gids.map(({ index }) => index)).toEqual(Array.from({ length: 32 }, (_, index) => index));
  });
});
