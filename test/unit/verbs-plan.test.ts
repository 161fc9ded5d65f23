/** Plans of hosts with InfiniBand or RoCE ports. */
import { describe, expect, test } from 'vitest';
import type { HostNic, HostVerbs } from '../../control/messages/nic.ts';
import { decodeHostPlan } from '../../control/plan/decode.ts';
import { encodeHostPlan } from '../../control/plan/encode.ts';
import type { CommPlan } from '../../control/plan/types.ts';
import { validatePlan } from '../../control/plan/validate.ts';
import { UnplannableError } from '../../control/planner/input/check.ts';
import type { PlanInput } from '../../control/planner/input/input.ts';
import type { Environment } from '../../control/planner/input/variables.ts';
import { nicsBetween } from '../../control/planner/network/network.ts';
import { Planner } from '../../control/planner/planner.ts';

const RANKS_PER_HOST = 2;
const NO_CARDS: HostVerbs = { ports: [], problem: 'the kernel has no InfiniBand devices' };

function ports(host: number, ...cards: readonly string[]): HostVerbs {
  const made = cards.map((card, index) => ({
    card,
    port: 1,
    linkLayer: 'InfiniBand' as const,
    speedMbps: 400_000,
    mtu: 4096,
    pciPath: null,
    firmware: '',
    gids: [{ index: 0, gid: `fe80::${host}:${index}`, version: null }],
  }));
  return { ports: made, problem: null };
}

function input(...verbs: readonly (HostVerbs | undefined)[]): PlanInput {
  const eth0: Omit<HostNic, 'address'> = {
    name: 'eth0',
    prefixLength: 24,
    speedMbps: 10_000,
    pciPath: null,
    isVirtual: false,
    isNamed: false,
  };
  return {
    hosts: verbs.map((one, host) => ({
      name: `n${host}`,
      address: `10.0.0.${host + 1}`,
      cores: 8,
      machine: null,
      nics: [{ ...eth0, address: `10.0.0.${host + 1}` }],
      ...(one === undefined ? {} : { verbs: one }),
    })),
    peers: Array.from({ length: verbs.length * RANKS_PER_HOST }, (_, rank) => ({
      host: Math.floor(rank / RANKS_PER_HOST),
      listenPort: 4000,
      device: 'host',
      cudaDevice: 0,
      busId: '0',
      smCount: 0,
      maxChannels: 0,
      communicators: 0,
      pidHash: String(rank),
    })),
    token: '0123456789abcdef0123456789abcdef',
  };
}

const two = input(ports(0, 'mlx5_0', 'mlx5_1'), ports(1, 'mlx5_2', 'mlx5_3'));

function planned(facts: PlanInput, environment: Environment = {}, given: CommPlan | null = null): CommPlan {
  const plan = new Planner(given === null ? null : { source: 'p.json', plan: given }, environment).plan(facts, true);
  validatePlan(plan);
  return plan;
}

const nicsOf = (plan: CommPlan): string[] =>
  plan.hosts.map(({ nics }) => nics.map(({ name, address }) => `${name} ${address}`).join(', '));

describe('a plan of hosts with InfiniBand', () => {
  test('ranks of different hosts use it, those of one host share memory', () => {
    const plan = planned(two);
    expect(plan.transports).toEqual({ sameHost: 'shm', otherHost: 'ib' });
    expect(plan.network).toEqual({ name: 'IB', sockets: 1, socketThreads: 0 });
    expect(nicsOf(plan)).toEqual(['mlx5_0 fe80::0:0, mlx5_1 fe80::0:1', 'mlx5_2 fe80::1:0, mlx5_3 fe80::1:1']);
    expect(plan.channels.map(({ rail }) => rail)).toEqual([0, 1]);
    expect(plan.peers.map(({ pairNic }) => pairNic)).toEqual([0, 1, 0, 1]);
  });

  test('the engine gets the ports, their GIDs and the transport', () => {
    const plan = planned(two);
    const { plan: decoded, locals } = decodeHostPlan(encodeHostPlan(plan, 1));
    const { transports, network, hosts } = decoded;
    expect({ transports, network }).toEqual({ transports: plan.transports, network: plan.network });
    expect(hosts[1]?.nics.map(({ name, port, address }) => `${name}:${port} ${address}`)).toEqual([
      'mlx5_2:1 fe80::1:0',
      'mlx5_3:1 fe80::1:1',
    ]);
    const edges = locals.flatMap((local) => local.edges);
    expect(edges.filter(({ nic }) => nic !== null).length).toBeGreaterThan(0);
    for (const { peer, channel, nic, peerNic } of edges) {
      const isInside = Math.floor(peer / RANKS_PER_HOST) === 1;
      expect([nic, peerNic]).toEqual(isInside ? [null, null] : [channel, channel]);
    }
  });

  test('one host needs none of it', () => {
    expect(planned(input(ports(0, 'mlx5_0')))).toMatchObject({
      network: null,
      transports: { sameHost: 'shm', otherHost: 'socket' },
      hosts: [{ nics: [] }],
    });
    expect(nicsBetween(input(ports(0, 'mlx5_0')), { NCCL_NET: 'IB' })).toBeNull();
  });
});

describe('hosts that do not all have InfiniBand', () => {
  test.each<[string, readonly (HostVerbs | undefined)[], Environment, string | null]>([
    ['one of them has no cards', [ports(0, 'mlx5_0'), NO_CARDS], {}, `n1: ${NO_CARDS.problem}`],
    ['nobody has cards', [NO_CARDS, NO_CARDS], {}, null],
    ['nobody asked for them', [undefined, undefined], {}, null],
    ['a variable forbids it', [ports(0, 'a'), ports(1, 'a')], { NCCL_IB_DISABLE: '1' }, 'NCCL_IB_DISABLE=1'],
    ['the user wants sockets', [ports(0, 'a'), ports(1, 'a')], { NCCL_NET: 'Socket' }, 'NCCL_NET=Socket'],
    ['a port is down', [ports(0, 'a'), { ports: [], problem: 'no port is active' }], {}, 'n1: no port is active'],
  ])('use sockets where %s, and say why', (_, verbs, environment, whyNotVerbs) => {
    expect(nicsBetween(input(...verbs), environment)).toMatchObject({ backend: 'Socket', whyNotVerbs });
    const plan = planned(input(...verbs), environment);
    expect(plan.transports.otherHost).toBe('socket');
    expect(nicsOf(plan)).toEqual(['eth0 10.0.0.1', 'eth0 10.0.0.2']);
  });

  test.each(['IB', 'ib'])('are refused with NCCL_NET=%s, and the reason is said', (wanted) => {
    expect(() => planned(input(ports(0, 'mlx5_0'), NO_CARDS), { NCCL_NET: wanted })).toThrow(
      new UnplannableError(`NCCL_NET=IB: the hosts cannot reach each other so: n1: ${NO_CARDS.problem}`),
    );
  });
});

describe('a given plan', () => {
  test('that was written for sockets goes over InfiniBand where the hosts have it', () => {
    const given = planned(input(NO_CARDS, NO_CARDS));
    const plan = planned(two, {}, { ...given, transports: { sameHost: 'socket', otherHost: 'socket' } });
    expect(plan.transports).toEqual({ sameHost: 'ib', otherHost: 'ib' });
    expect(plan.network).toEqual({ name: 'IB', sockets: 1, socketThreads: 0 });
  });

  test('that was written for InfiniBand goes over sockets where a host has none', () => {
    const plan = planned(
      input(NO_CARDS, NO_CARDS),
      {},
      { ...planned(two), transports: { sameHost: 'ib', otherHost: 'ib' } },
    );
    expect(plan.transports).toEqual({ sameHost: 'socket', otherHost: 'socket' });
    expect(plan.network?.name).toBe('Socket');
  });
});
