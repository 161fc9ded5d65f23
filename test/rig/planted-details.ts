/** More readings with one fault each: logins, control groups, RoCE, where cards sit, NVLink between hosts, and data. */
import type { HostReadings } from '../../control/readings.ts';
import { part, type PlantedRow } from './planted-readings.ts';
import { wellHost, wellPci, wellPort, wellRoce } from './readings.ts';

const GIB = 2 ** 30;
const MIB = 2 ** 20;
const CLUSTER = '5b1e6a2c-0000-4000-8000-000000000001';

const ethernet = wellPort({ linkLayer: 'Ethernet', roceAddress: true, roceIndices: [3, 5] });

/** A host whose only port is one of RoCE. */
export const withRoce = (changes: Partial<HostReadings['roce'][number]> = {}): Partial<HostReadings> => ({
  infiniband: [ethernet],
  roce: [wellRoce(changes)],
});

/** GPUs of a fabric over several hosts. */
export const inDomain = (clique = '1', imex: Partial<HostReadings['imex']> = {}): Partial<HostReadings> => {
  const { gpus } = wellHost();
  const devices = (gpus.devices ?? []).map((gpu) => ({ ...gpu, domain: { cluster: CLUSTER, clique } }));
  return { gpus: { ...gpus, devices }, imex: { channels: 1, usableChannels: 1, state: 'READY', ...imex } };
};

export const withData = (megabytesPerSecond: number, problem: string | null = null): Partial<HostReadings> => ({
  data: { path: '/data', bytes: 256 * MIB, seconds: (256 * MIB) / (megabytesPerSecond * 1e6), problem },
});

/** Two GPUs, each with a card below its own bridge; `second`: bridge of the second card. */
export const withCards = (second = 'b2'): Partial<HostReadings> => ({
  pci: [
    wellPci({ kind: 'gpu', address: 'g1', bridges: ['p1', 'b1'] }),
    wellPci({ kind: 'gpu', address: 'g2', bridges: ['p2', 'b2'] }),
    wellPci({ kind: 'gpu', address: 'g3', bridges: ['p2', 'b2'] }),
    wellPci({ address: 'n1', bridges: ['p1', 'b1'] }),
    wellPci({ address: 'n2', bridges: [second] }),
  ],
  infiniband: [wellPort({ address: 'n1' }), wellPort({ card: 'mlx5_1', address: 'n2' })],
});

const forced = (value: string): HostReadings['environment'] => ({
  ...wellHost().environment,
  nccl: [{ name: 'NCCL_IB_GID_INDEX', value, source: 'environment' }],
});

export const plantedDetails: readonly PlantedRow[] = [
  [
    'a login that writes',
    { login: { shell: '/bin/bash', bytes: 8, line: 'welcome' } },
    'login.output',
    'warn',
    /^\/bin\/bash writes 8 bytes before a command runs: "welcome"$/u,
  ],
  [
    'a container among servers',
    part('system', { container: true }),
    'system.kind',
    'note',
    /^kind of system container; /u,
  ],
  ['an older glibc', part('system', { libc: '2.28' }), 'os.same', 'note', /glibc 2\.28/u],
  ['processors of others', part('processors', { usable: 8 }), 'cpu.usable', 'warn', /8 of 64; /u],
  [
    'a control group with little memory',
    part('cgroup', { memoryBytes: 16 * GIB }),
    'cgroup.memory',
    'warn',
    /allows 16 GiB; its GPUs want 32 GiB/u,
  ],
  [
    'a control group whose memory is used',
    part('cgroup', { memoryBytes: 100 * GIB, memoryUsedBytes: 91 * GIB }),
    'cgroup.memory',
    'warn',
    /91 GiB of 100 GiB/u,
  ],
  [
    'a control group that stops processes',
    part('cgroup', { throttledMeanwhile: 3 }),
    'cgroup.throttled',
    'warn',
    /3 times within 1\.0 s/u,
  ],
  [
    'reserved huge pages',
    part('memory', { hugePageBytes: 64 * GIB }),
    'memory.reserved',
    'note',
    /^memory in reserved huge pages: 64 GiB; /u,
  ],
  [
    'core files that get lost',
    {
      ...part('limits', { coreBytes: 'unlimited' }),
      kernelSettings: { ...wellHost().kernelSettings, corePattern: '/gone/core.%p', corePlaceExists: false },
    },
    'limits.core',
    'note',
    /kernel\.core_pattern is \/gone\/core\.%p/u,
  ],
  ['a clock that is set', part('clock', { steppedMs: -3 }), 'time.steps', 'note', /set 3\.0 ms back/u],
  [
    'priorities of a VLAN that is not there',
    withRoce({ trust: 'pcp' }),
    'roce.flow-control',
    'warn',
    /^eth0 takes priorities from VLAN tags and has no VLAN/u,
    withRoce(),
  ],
  [
    'pauses of another priority',
    withRoce({ paused: [3, 5] }),
    'roce.flow-control',
    'warn',
    /seen pauses of priority 5, and has flow control for 3/u,
    withRoce(),
  ],
  [
    'a receiver that reports no marks',
    withRoce({ notifying: [] }),
    'roce.flow-control',
    'warn',
    /ECN of priority 3 is half on: nobody reports marks/u,
    withRoce(),
  ],
  [
    'a sender that does not slow down',
    withRoce({ reacting: [] }),
    'roce.flow-control',
    'warn',
    /ECN of priority 3 is half on: nobody slows down/u,
    withRoce(),
  ],
  [
    'an end without flow control',
    withRoce({ pausing: [] }),
    'roce.flow-control',
    'warn',
    /^RoCE ports flow control none by dscp, ECN 3; /u,
    withRoce(),
  ],
  [
    'small packets of RoCE',
    withRoce({ mtu: 1500 }),
    'roce.packet-size',
    'warn',
    /^the MTU of eth0 is 1500/u,
    withRoce(),
  ],
  [
    'an index without an address',
    { ...withRoce(), environment: forced('0') },
    'roce.address-index',
    'warn',
    /^NCCL_IB_GID_INDEX=0 \(environment\) names no address for RoCE v2; those are 3, 5$/u,
    withRoce(),
  ],
  [
    'a card that sends less at once',
    { pci: [wellPci(), wellPci({ address: '0000:18:00.0', payloadBytes: 128 })] },
    'pci.payload',
    'note',
    /sends 128 bytes at once at most, others here 256/u,
  ],
  [
    'a GPU without a card',
    {
      ...withCards(),
      pci: [...(withCards().pci ?? []), wellPci({ kind: 'gpu', address: 'g4', bridges: ['p3'] })],
    },
    'pci.placement',
    'note',
    /^no InfiniBand or RoCE card is below its bridge/u,
    withCards(),
  ],
  [
    'a card in another slot',
    withCards('b1'),
    'pci.placement',
    'note',
    /^cards near its GPUs: 2, 0, 0; .*: 1, 1, 1$/u,
    withCards(),
  ],
  [
    'no channel of IMEX',
    inDomain('1', { channels: 0, usableChannels: 0 }),
    'nvlink.domain',
    'fail',
    /no \/dev\/nvidia-caps-imex-channels\/channel0/u,
    inDomain(),
  ],
  [
    'a channel of IMEX for others',
    inDomain('1', { usableChannels: 0 }),
    'nvlink.domain',
    'fail',
    /may open no channel of IMEX/u,
    inDomain(),
  ],
  [
    'an IMEX that is not ready',
    inDomain('1', { state: 'UNAVAILABLE' }),
    'nvlink.domain',
    'fail',
    /not ready \(UNAVAILABLE\)/u,
    inDomain(),
  ],
  [
    'an IMEX that cannot be asked',
    inDomain('1', { state: null }),
    'nvlink.domain',
    'unknown',
    /cannot be asked/u,
    inDomain(),
  ],
  [
    'another clique',
    inDomain('2'),
    'nvlink.domain',
    'warn',
    /clique 2 of their NVLink domain, others in 1/u,
    inDomain(),
  ],
  [
    'slow data',
    withData(499),
    'files.data',
    'warn',
    /^499 MB\/s are read \(median of all: 1\.00e\+3 MB\/s\)$/u,
    withData(1000),
  ],
  [
    'data that is not there',
    withData(1000, 'there is no file that can be read'),
    'files.data',
    'fail',
    /cannot be read: there is no file/u,
    withData(1000),
  ],
  [
    'data that hangs',
    { data: { path: '/data', bytes: MIB, seconds: 10, problem: 'dd has not ended within 10 s' } },
    'files.data',
    'fail',
    /^1 MiB were read, then dd has not ended/u,
    withData(1000),
  ],
  [
    'data that is too little',
    { data: { path: '/data', bytes: 4096, seconds: 1, problem: null } },
    'files.data',
    'unknown',
    /4 KiB are too little/u,
    withData(1000),
  ],
  [
    'an NCCL that is too old',
    {
      environment: { ...wellHost().environment, library: '/opt/libnccl.so.2', libraryVersion: '2.18.5' },
    },
    'environment.library',
    'note',
    /\/opt\/libnccl\.so\.2 \(2\.18\.5, older than PyTorch 2\.4/u,
  ],
  [
    'another NCCL of the system',
    { environment: { ...wellHost().environment, libraryVersion: '2.21.5' } },
    'environment.library',
    'note',
    /^libnccl\.so\.2 of version 2\.21\.5; /u,
    { environment: { ...wellHost().environment, libraryVersion: '2.27.3' } },
  ],
];
