import { describe, expect, test } from 'vitest';
import { decodeHostPlan } from '../../control/plan/decode.ts';
import { encodeHostPlan } from '../../control/plan/encode.ts';
import { usesNetwork } from '../../control/plan/network.ts';
import type { CommPlan } from '../../control/plan/types.ts';
import { validatePlan } from '../../control/plan/validate.ts';
import type { PlanInput } from '../../control/planner/input/input.ts';
import { Planner } from '../../control/planner/planner.ts';
import type { Environment } from '../../control/planner/input/variables.ts';
import { samplePlan } from '../rig/plans.ts';

const RANKS_PER_HOST = 3;
const some = (length: number): number[] => Array.from({ length }, () => 0);

/** So many hosts, with an interface in each of `rails` subnets. */
function input(hosts: number, rails: number, speedMbps = 10_000): PlanInput {
  return {
    hosts: Array.from({ length: hosts }, (_, host) => ({
      name: `n${host}`,
      address: `10.0.0.${host}`,
      cores: 64,
      machine: null,
      nics: Array.from({ length: rails }, (_nic, rail) => ({
        name: `eth${rail}`,
        address: `10.0.${rail}.${host}`,
        prefixLength: 24,
        speedMbps,
        pciPath: `/sys/devices/pci0000:00/0000:0${rail}:00.0`,
        isVirtual: false,
        isNamed: false,
      })),
    })),
    peers: Array.from({ length: hosts * RANKS_PER_HOST }, (_, rank) => ({
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

function planned(facts: PlanInput, environment: Environment = {}): CommPlan {
  const plan = new Planner(null, environment).plan(facts, true);
  validatePlan(plan);
  return plan;
}

test.each([
  [1, 1, 'socket', false],
  [1, 2, 'socket', true],
  [1, 2, 'ib', true],
  [1, 2, 'plugin', true],
  [1, 2, 'shm', false],
  [1, 2, 'p2p', false],
  [2, 2, 'shm', true],
] as const)(
  '%d hosts with %d ranks that reach each other inside a host by %s use a network: %s',
  (hosts, ranks, sameHost, uses) => {
    const transports = { sameHost, otherHost: 'socket' } as const;
    expect(usesNetwork({ hosts: some(hosts), peers: some(ranks), transports })).toBe(uses);
  },
);

describe('the network of a plan', () => {
  test('two rails get two channels, and each keeps its rail at both ends of a host boundary', () => {
    const plan = planned(input(2, 2));
    expect(plan.channels.map(({ rail }) => rail)).toEqual([0, 1]);
    expect(plan.hosts[1]?.nics.map(({ name, address }) => `${name} ${address}`)).toEqual([
      'eth0 10.0.0.1',
      'eth1 10.0.1.1',
    ]);
    for (const host of [0, 1]) {
      const { locals } = decodeHostPlan(encodeHostPlan(plan, host));
      for (const edge of locals.flatMap(({ edges }) => edges)) {
        const isInside = Math.floor(edge.peer / RANKS_PER_HOST) === host;
        expect(edge.nic).toBe(isInside ? null : edge.channel);
        expect(edge.peerNic).toBe(edge.nic);
      }
    }
  });

  test('the planner reports which NICs several hosts use, and why', () => {
    const said: string[] = [];
    const planner = new Planner(null, {}, (sentence) => said.push(sentence));
    planner.plan(input(2, 2), true);
    planner.plan(input(1, 2), true);
    expect(said).toEqual([
      'network Socket, NICs: n0 uses eth0 (10.0.0.0), eth1 (10.0.1.0); n1 uses eth0 (10.0.0.1), eth1 (10.0.1.1): ' +
        'there is one in each of 2 subnets on every host',
    ]);
  });

  test('the ranks of a host take the rails in turn for their pairs', () => {
    expect(planned(input(2, 2)).peers.map(({ pairNic }) => pairNic)).toEqual([0, 1, 0, 0, 1, 0]);
    expect(planned(input(2, 1)).peers.map(({ pairNic }) => pairNic)).toEqual([0, 0, 0, 0, 0, 0]);
  });

  test('each rank has a part of the NICs to itself where there are more NICs than ranks', () => {
    expect(planned(input(2, 3)).peers.map(({ pairNic }) => pairNic)).toEqual([0, 1, 2, 0, 1, 2]);
    expect(planned(input(2, 6)).peers.map(({ pairNic }) => pairNic)).toEqual([0, 2, 4, 0, 2, 4]);
    expect(planned(input(2, 8)).peers.map(({ pairNic }) => pairNic)).toEqual([0, 2, 5, 0, 2, 5]);
  });

  test('one interface has one channel, as ever', () => {
    const plan = planned(input(2, 1));
    expect(plan.channels).toHaveLength(1);
    expect(plan.network).toEqual({ name: 'Socket', sockets: 1, socketThreads: 0 });
  });

  test('NCCL_MAX_NCHANNELS bounds the channels of several rails', () => {
    expect(planned(input(2, 4), { NCCL_MAX_NCHANNELS: '3' }).channels.map(({ rail }) => rail)).toEqual([0, 1, 2]);
    expect(planned(input(2, 2), { NCCL_MIN_NCHANNELS: '5' }).channels.map(({ rail }) => rail)).toEqual([0, 1, 0, 1, 0]);
  });

  test('one host needs no NIC, and takes its loopback where its ranks use sockets', () => {
    const alone = planned(input(1, 2));
    expect(alone.network).toBeNull();
    expect(alone.hosts[0]?.nics).toEqual([]);
    expect(alone.peers.every(({ pairNic }) => pairNic === null)).toBe(true);
    const given = { ...alone, transports: { sameHost: 'socket', otherHost: 'socket' } as const, network: null };
    const plan = new Planner({ source: 'p.json', plan: given }).plan(input(1, 2), true);
    validatePlan(plan);
    expect(plan.hosts[0]?.nics.map(({ name, address }) => [name, address])).toEqual([['lo', '127.0.0.1']]);
    expect(plan.peers.map(({ pairNic }) => pairNic)).toEqual([0, 0, 0]);
  });

  test('fast NICs get several sockets, and a variable stands above that', () => {
    expect(planned(input(2, 1, 100_000)).network).toMatchObject({ sockets: 4, socketThreads: 4 });
    const wanted = { NCCL_SOCKET_NTHREADS: '2', NCCL_NSOCKS_PERTHREAD: '3' };
    expect(planned(input(2, 1, 100_000), wanted).network).toMatchObject({ sockets: 6, socketThreads: 2 });
    expect(() => planned(input(2, 1), { NCCL_SOCKET_NTHREADS: 'all' })).toThrow(/NCCL_SOCKET_NTHREADS=all/);
    expect(planned(input(1, 1), { NCCL_SOCKET_NTHREADS: 'all' }).network).toBeNull();
  });

  test('a given plan keeps its rails, sockets, SMs and timeouts', () => {
    const given = { ...samplePlan(), smsPerLaunch: 2, copyChannels: 1 };
    const facts = input(2, 2);
    const five = {
      ...facts,
      peers: facts.peers
        .slice(0, given.peers.length)
        .map((peer, rank) => ({ ...peer, host: given.peers[rank]?.host ?? 0 })),
    };
    const plan = new Planner({ source: 'p.json', plan: given }).plan(five, true);
    validatePlan(plan);
    expect(plan.channels.map(({ rail }) => rail)).toEqual(given.channels.map(({ rail }) => rail));
    expect(plan.network).toEqual(given.network);
    expect(plan.smsPerLaunch).toBe(2);
    expect(plan.copyTimeouts).toEqual(given.copyTimeouts);
  });

  test.each<[string, (plan: CommPlan) => CommPlan, RegExp]>([
    ['no network', (plan) => ({ ...plan, network: null }), /^network: is missing/],
    [
      'too many sockets',
      (plan) => ({ ...plan, network: { name: 'Socket', sockets: 64, socketThreads: 0 } }),
      /^network\.sockets: 64, expected .* to 63$/,
    ],
    [
      'too many threads',
      (plan) => ({ ...plan, network: { name: 'Socket', sockets: 1, socketThreads: 17 } }),
      /^network\.socketThreads: 17/,
    ],
    [
      'a host without NICs',
      (plan) => ({ ...plan, hosts: plan.hosts.map((host, index) => (index === 1 ? { ...host, nics: [] } : host)) }),
      /^hosts\[1\]\.nics: n1 has none/,
    ],
    [
      'an address that is none',
      (plan) => ({
        ...plan,
        hosts: plan.hosts.map((host) => ({ ...host, nics: host.nics.map((nic) => ({ ...nic, address: 'n1' })) })),
      }),
      /^hosts\[0\]\.nics\[0\]\.address: 'n1' of eth0 is no numeric/,
    ],
    [
      'a rail that does not exist',
      (plan) => ({ ...plan, channels: plan.channels.map((channel) => ({ ...channel, rail: 2 })) }),
      /^channels\[0\]\.rail: 2, expected a whole number from 0 to 1$/,
    ],
    [
      'a rank without a NIC',
      (plan) => ({ ...plan, peers: plan.peers.map((peer) => ({ ...peer, pairNic: null })) }),
      /^peers\[0\]\.pairNic: /,
    ],
  ])('a plan with %s is refused', (_title, change, problem) => {
    expect(() => validatePlan(change(planned(input(2, 2))))).toThrow(problem);
  });
});
