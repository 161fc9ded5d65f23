/** InfiniBand and RoCE ports as hosts tell of them, as `ncclrun topo` shows them, and as the planner chooses among them. */
import { describe, expect, test } from 'vitest';
import type { HostVerbs } from '../../control/messages/nic.ts';
import { describeNics, nicsBetween } from '../../control/planner/network/network.ts';
import { readVerbsViews, verbsText, verbsViews } from '../../launcher/topology/verbs.ts';
import { preflightFacts } from '../../worker/agent/preflight.ts';
import { foundVerbs, hostVerbs } from '../../worker/topology/host-verbs.ts';
import { FakeSysfs } from '../rig/sysfs.ts';

const rocePort = (name: string, more: object = {}) => ({
  name,
  port: 1,
  active: true,
  ethernet: true,
  guid: '0x1234',
  activeWidth: 2,
  activeSpeed: 128,
  maxQueuePairs: 1000,
  firmware: '28.39.1002',
  lid: 0,
  activeMtu: 5,
  gids: [
    { index: 0, gid: 'fe80::1' },
    { index: 2, gid: '::ffff:10.8.0.1' },
    { index: 3, gid: '::ffff:10.8.0.1' },
  ],
  ...more,
});

/** A host with the ports; those that the kernel knows have a state there. */
function machine(ports: readonly ReturnType<typeof rocePort>[], states: Readonly<Record<string, string>> = {}) {
  const host = new FakeSysfs();
  for (const { name } of ports) {
    const directory = `sys/class/infiniband/${name}/ports/1`;
    host.write(`${directory}/state`, states[name] ?? '4: ACTIVE');
    host.write(`${directory}/gid_attrs/types/2`, 'IB/RoCE v1');
    host.write(`${directory}/gid_attrs/types/3`, 'RoCE v2');
  }
  return { host, native: { verbsPorts: () => ports }, [Symbol.dispose]: () => host[Symbol.dispose]() };
}

describe('what ncclrun topo shows of ports', () => {
  const ports = [rocePort('mlx5_0'), rocePort('mlx5_1', { active: false, activeSpeed: 0 })];

  test('each port has its rate, MTU, state, firmware and the GID of jobs', () => {
    using its = machine(ports, { mlx5_1: '1: DOWN' });
    expect(verbsText(verbsViews(foundVerbs(its.native, its.host.root), {}))).toBe(
      [
        '',
        'card    port  link      rate       MTU  state     firmware  GID of jobs',
        'mlx5_0     1  Ethernet  400 Gb/s  4096  active  28.39.1002  ::ffff:10.8.0.1, index 3, RoCE v2',
        'mlx5_1     1  Ethernet  -         4096  down    28.39.1002  none: down',
        '',
      ].join('\n'),
    );
  });

  test.each([
    [{ NCCL_IB_HCA: 'mlx5_7' }, 'not in NCCL_IB_HCA=mlx5_7'],
    [{ NCCL_IB_DISABLE: '1' }, 'NCCL_IB_DISABLE=1'],
    [{ NCCL_NET: 'Socket' }, 'NCCL_NET=Socket'],
    [{ NCCL_IB_GID_INDEX: '9' }, 'no GID of the wanted kind'],
    [{ NCCL_IB_ADDR_FAMILY: 'AF_X' }, 'NCCL_IB_ADDR_FAMILY=AF_X: AF_INET or AF_INET6 is wanted'],
  ])('an active port that %j excludes is not used, and says why', (environment, reason) => {
    using its = machine(ports);
    const [first] = verbsViews(foundVerbs(its.native, its.host.root), environment);
    expect(first).toMatchObject({ gid: null, unusedBecause: reason });
  });

  test('a host without ports has no table', () => {
    expect(verbsText([])).toBe('');
  });

  test('what another host prints as JSON reads back, and an older version prints none', () => {
    using its = machine(ports);
    const views = verbsViews(foundVerbs(its.native, its.host.root), {});
    expect(readVerbsViews(JSON.parse(JSON.stringify(views)))).toEqual(views);
    expect(readVerbsViews(undefined)).toEqual([]);
  });

  test('a job hears of active ports only', () => {
    using its = machine(ports, { mlx5_1: '1: DOWN' });
    const { ports: active, problem } = hostVerbs(its.native, its.host.root);
    expect(active.map(({ card }) => card)).toEqual(['mlx5_0']);
    expect(active[0]).not.toHaveProperty('state');
    expect(problem).toBeNull();
  });

  test('a host whose cards have no library says both', () => {
    using its = machine(ports);
    expect(hostVerbs({ verbsPorts: () => 'no libibverbs' }, its.host.root)).toEqual({
      ports: [],
      problem: 'no libibverbs, though the kernel has mlx5_0, mlx5_1',
    });
  });
});

const fact = (ports: readonly ReturnType<typeof rocePort>[], states: Readonly<Record<string, string>> = {}) => {
  using its = machine(ports, states);
  return preflightFacts(its.host.root, hostVerbs(its.native, its.host.root))['InfiniBand ports'];
};

describe('what preflight compares of ports', () => {
  test('ports that are alike have one rate and MTU', () => {
    expect(fact([rocePort('mlx5_0'), rocePort('mlx5_1')])).toBe('2 active, 400 Gb/s, MTU 4096');
  });

  test('a port that is down is named', () => {
    const ports = [rocePort('mlx5_0'), rocePort('mlx5_1', { active: false })];
    expect(fact(ports, { mlx5_1: '1: DOWN' })).toBe('1 active, mlx5_1 port 1 down, 400 Gb/s, MTU 4096');
  });

  test('ports of different rates or MTUs are listed', () => {
    const ports = [rocePort('mlx5_0'), rocePort('mlx5_1', { activeMtu: 3 })];
    expect(fact(ports)).toBe('2 active, mlx5_0 port 1 400 Gb/s, MTU 4096, mlx5_1 port 1 400 Gb/s, MTU 1024');
  });

  test('a host with many different ports stays within what a hello may say', () => {
    const ports = Array.from({ length: 64 }, (_, index) =>
      rocePort(`mlx5_bond_${index}`, { activeMtu: 1 + (index % 5) }),
    );
    expect(fact(ports)?.length).toBeLessThan(1000);
  });
});

const active = (): HostVerbs => {
  using its = machine([rocePort('mlx5_0')]);
  return hostVerbs(its.native, its.host.root);
};
const none = (problem: string): HostVerbs => ({ ports: [], problem });
const said = (verbs: readonly HostVerbs[], environment: Record<string, string> = {}): string => {
  const hosts = verbs.map((one, index) => ({
    name: `n${index}`,
    address: `10.0.0.${index + 1}`,
    cores: 1,
    machine: null,
    tables: null,
    verbs: one,
  }));
  const input = { hosts, peers: [], token: '' };
  const between = nicsBetween(input, environment);
  return between === null ? '' : describeNics(input, between);
};

describe('why a job does not use InfiniBand', () => {
  test('hosts that all have ports name them with GID and rate', () => {
    expect(said([active(), active()])).toMatch(
      /^network IB, NICs: n0 uses mlx5_0 port 1 \(GID ::ffff:10\.8\.0\.1, 400 Gb\/s\); n1 uses mlx5_0 .*: n0 has 1 active RoCE port$/,
    );
  });

  test('one host without ports is named where another has some', () => {
    expect(said([active(), none('no port is active')])).toMatch(/^network Socket, .*; not IB: n1: no port is active$/);
  });

  test('a variable is named', () => {
    expect(said([active(), active()], { NCCL_IB_DISABLE: '1' })).toMatch(/; not IB: NCCL_IB_DISABLE=1$/);
  });

  test('hosts without cards say nothing of InfiniBand', () => {
    using its = machine([]);
    const without = hostVerbs(its.native, its.host.root);
    expect(said([without, without])).not.toContain('IB');
  });
});
