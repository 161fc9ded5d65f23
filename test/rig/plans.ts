/** CommPlans to test with. */
import type { CommPlan, Variant } from '../../control/plan/types.ts';
import { isNetwork, pairNicOf } from '../../control/plan/network.ts';
import type { GpuNic } from '../../control/plan/gpu-nics.ts';
import type { PlanNic } from '../../control/plan/network.ts';
import type { PlanInput } from '../../control/planner/input/input.ts';
import { knownMachine } from '../../control/planner/known-machine.ts';
import type { AnnouncedMachine } from '../../control/planner/known-machine.ts';
import type { Element } from '../../control/topology/element.ts';
import { Planner } from '../../control/planner/planner.ts';
import { rankNumbersByHost } from '../../control/planner/input/input.ts';
import { eightGpus } from './eight-gpus.ts';
import { shuffled } from './random.ts';
import type { Random } from './random.ts';

const variant: Variant = {
  algorithm: 'ring',
  protocol: 'simple',
  channels: 1,
  chunkBytes: 4097,
  threads: 64,
  requires: [],
  asMessages: false,
  predictedMicroseconds: 0,
  predictedMicrosecondsPerMebibyte: 0,
};

const nearCard: GpuNic = { local: 0, card: '0000:1b:00.0', path: 'PIX', receives: 'allowed', sends: 'noReads' };

/** With what the engine knows of it, and no more. */
function nic(name: string, address: string, speedMbps = 25_000): PlanNic {
  return {
    name,
    address,
    port: name.length,
    speedMbps,
    pciPath: null,
    gpuDirect: name.startsWith('mlx'),
    gpuDirectReason: '',
    gpuPaths: [],
  };
}

/** Five ranks on two hosts, three channels, every kind of entry. */
export function samplePlan(): CommPlan {
  return {
    formatVersion: 1,
    device: 'host',
    peers: [
      { host: 0, listenPort: 4100, pairNic: 0 },
      { host: 1, listenPort: 4101, pairNic: 0 },
      { host: 0, listenPort: 4102, pairNic: 1 },
      { host: 1, listenPort: 4103, pairNic: 1 },
      { host: 0, listenPort: 65_535, pairNic: 0 },
    ],
    hosts: [
      {
        name: 'node0',
        address: '10.77.0.10',
        nics: [nic('eth0', '10.77.0.10'), nic('mlx5_ö', '10.78.0.10')],
        gpuNics: [nearCard, { ...nearCard, local: 2, card: null, path: 'SYS', receives: 'tooFar' }],
      },
      {
        name: 'knoten-ö',
        address: 'fe80::1',
        nics: [nic('eth0', 'fe80::1%eth0'), nic('eth1', 'fd00::1')],
        gpuNics: [],
      },
    ],
    channels: [
      { ring: [0, 2, 4, 1, 3], tree: [0, 0, 0, 1, 2], rail: 0 },
      { ring: [3, 1, 4, 0, 2], tree: [4, 1, 4, 1, 3], rail: 1 },
      { ring: [4, 2, 0, 3, 1], tree: [0, 0, 0, 1, 2], rail: 0 },
    ],
    copyChannels: 2,
    smsPerLaunch: 3,
    copyTimeouts: { minMicroseconds: 1, maxMicroseconds: 2000, capturedMicroseconds: 30_000 },
    transports: { sameHost: 'shm', otherHost: 'socket' },
    network: { name: 'Socket', sockets: 3, socketThreads: 2 },
    ringBuffer: { steps: 8, stepBytes: 4160 },
    pairBuffer: { steps: 16, stepBytes: 64 },
    gpuBuffers: null,
    tuning: [
      { collective: 'allReduce', upToBytes: 1024, variants: [{ ...variant, algorithm: 'directOneShot' }] },
      {
        collective: 'allReduce',
        upToBytes: 65_536,
        variants: [
          { ...variant, algorithm: 'directTwoShot', protocol: 'll', requires: ['registeredBuffers', 'notCaptured'] },
          {
            ...variant,
            channels: 2,
            threads: 512,
            predictedMicroseconds: 12.5,
            predictedMicrosecondsPerMebibyte: 0.25,
          },
        ],
      },
      { collective: 'allReduce', upToBytes: null, variants: [{ ...variant, channels: 3 }] },
      { collective: 'sendRecv', upToBytes: null, variants: [variant] },
    ],
    spinNanoseconds: 20_000,
    token: '00112233445566778899aabbccddeeff',
    aggregators: {
      token: 'ffeeddccbbaa99887766554433221100',
      servers: [
        { address: '10.77.0.10', port: 4200 },
        { address: 'fd00::1', port: 65_535 },
      ],
    },
  };
}

/** What the engine of a host knows of it. */
export function asEncoded(plan: CommPlan, hostIndex = 0): CommPlan {
  const hosts = plan.hosts.map((host, index) => ({
    ...host,
    gpuNics: index === hostIndex ? host.gpuNics : [],
    nics: host.nics.map((one) => ({ ...one, pciPath: null, gpuDirectReason: '', gpuPaths: [] })),
  }));
  return { ...plan, hosts };
}

/** As a host tells what it is. */
export function machineOf(topology: Element): AnnouncedMachine {
  return knownMachine({ topology, graphs: null }, { environment: {}, dumpGraphs: null, problem: () => undefined });
}

/** Ranks with a GPU each, dealt to so many hosts, of which the first eight of each stand in eightGpus. */
export function gpuInput(ranks: number, hosts = 1): PlanInput {
  const machine = machineOf(eightGpus());
  return {
    hosts: Array.from({ length: hosts }, (_, index) => ({
      name: `n${index}`,
      address: `10.0.0.${index}`,
      cores: 64,
      machine,
    })),
    peers: Array.from({ length: ranks }, (_, rank) => ({
      host: rank % hosts,
      listenPort: hosts > 1 ? 4000 : 0,
      device: 'cuda',
      cudaDevice: rank,
      busId: (0x10_020 + Math.floor(rank / hosts) * 0x4000).toString(16),
      smCount: 132,
      maxChannels: 0,
      communicators: 0,
      pidHash: String(rank),
    })),
    token: '0123456789abcdef0123456789abcdef',
  };
}

/** As a job's planner decides without any wish. */
export function planCommunicator(input: PlanInput): CommPlan {
  return new Planner(null).plan(input, true);
}

export function gpuPlan(ranks: number, hosts = 1): CommPlan {
  return planCommunicator(gpuInput(ranks, hosts));
}

/** A valid plan of 1 to 24 ranks on up to 5 hosts. */
export function randomPlan(random: Random): CommPlan {
  const hostCount = 1 + random(5);
  const extra = random(20);
  const hostOf = shuffled(
    Array.from({ length: hostCount + extra }, (_, index) => (index < hostCount ? index : random(hostCount))),
    random,
  );
  const members = rankNumbersByHost({
    hosts: Array.from({ length: hostCount }),
    peers: hostOf.map((host) => ({ host })),
  });
  const channels = 1 + random(4);
  const sameHost = random(4) === 0 ? 'socket' : 'shm';
  const rails = hostCount > 1 || (hostOf.length > 1 && isNetwork(sameHost)) ? 1 + random(3) : 0;
  return {
    ...samplePlan(),
    peers: hostOf.map((host, rank) => ({
      host,
      listenPort: 1 + random(65_535),
      pairNic: pairNicOf(members[host]?.indexOf(rank) ?? 0, members[host]?.length ?? 0, rails),
    })),
    hosts: Array.from({ length: hostCount }, (_, index) => ({
      name: `n${index}`,
      address: `10.0.0.${index}`,
      nics: Array.from({ length: rails }, (_nic, rail) =>
        nic(`eth${rail}`, `10.${rail}.0.${index}`, random(5) * 10_000),
      ),
      gpuNics: [],
    })),
    network: rails === 0 ? null : { name: 'Socket', sockets: 1 + random(63), socketThreads: random(17) },
    channels: Array.from({ length: channels }, () => ({
      ring: shuffled(members, random).flatMap((ranks) => shuffled(ranks, random)),
      tree: randomTree(members, random),
      rail: rails === 0 ? 0 : random(rails),
    })),
    copyChannels: 1 + random(channels),
    smsPerLaunch: channels,
    transports: { sameHost, otherHost: 'socket' },
    ringBuffer: { steps: 2 + random(15), stepBytes: 64 * (1 + random(1000)) },
    pairBuffer: { steps: 2 + random(15), stepBytes: 64 * (1 + random(1000)) },
    tuning: [{ collective: 'allReduce', upToBytes: null, variants: [{ ...variant, channels: 1 + random(channels) }] }],
  };
}

/** Each host hangs on some rank of one that came before it, and each of its ranks on one of its own that did. */
function randomTree(members: readonly (readonly number[])[], random: Random): number[] {
  const tree: number[] = [];
  const before: number[] = [];
  for (const ranks of shuffled(members, random)) {
    const own: number[] = [];
    for (const rank of shuffled(ranks, random)) {
      tree[rank] = own[random(own.length)] ?? before[random(before.length)] ?? rank;
      own.push(rank);
    }
    before.push(...own);
  }
  return tree;
}
