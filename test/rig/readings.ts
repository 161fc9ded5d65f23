/** Readings of a host that is well, with what a test changes. */
import type { GpuReading, HostReadings } from '../../control/readings.ts';

const GIB = 2 ** 30;

/** Beside `changes` a server with nothing to complain about: two GPUs' worth of memory, one port of InfiniBand, one of Ethernet. */
export function wellHost(changes: Partial<HostReadings> = {}): HostReadings {
  return {
    schemaVersion: 1,
    version: '1.0.0',
    seconds: 1,
    system: {
      kernel: '6.1.0',
      distribution: 'Debian 12',
      node: 'v24.0.0',
      libc: '2.36',
      virtual: false,
      container: false,
      bootId: 'b',
      machineName: 'a',
    },
    processors: {
      online: 64,
      present: 64,
      usable: 64,
      governors: ['performance'],
      load: 0.1,
      stolen: 0,
      used: 0.01,
      overSeconds: 1,
      busiest: [],
    },
    processes: { total: 400, maximum: 4_194_304, zombies: 0, uninterruptible: [] },
    memory: {
      totalBytes: 512 * GIB,
      availableBytes: 500 * GIB,
      swapUsedBytes: 0,
      swappedPages: 0,
      numaNodeBytes: [256 * GIB, 256 * GIB],
      hugePageBytes: 0,
      uncorrectedErrors: 0,
      correctedErrors: 0,
    },
    cgroup: {
      cores: null,
      memoryBytes: null,
      memoryUsedBytes: null,
      tasks: null,
      tasksNow: null,
      throttledPeriods: 0,
      throttledMeanwhile: 0,
    },
    limits: {
      lockedMemoryBytes: 'unlimited',
      openFiles: 1_048_576,
      stackBytes: 8_388_608,
      processes: 100_000,
      coreBytes: 0,
    },
    kernelSettings: {
      ptraceScope: 1,
      portRange: [32_768, 60_999],
      receiveBufferBytes: 33_554_432,
      sendBufferBytes: 33_554_432,
      numaBalancing: 0,
      hugePages: 'madvise',
      removesIpc: false,
      corePattern: 'core',
      corePlaceExists: true,
      reversePathFilter: 0,
      arpIgnore: 0,
    },
    interfaces: [wellInterface()],
    reachable: ['10.0.0.1'],
    infiniband: [wellPort()],
    roce: [],
    verbsDevices: { present: 1, usable: 1 },
    pci: [wellPci()],
    pciBus: { iommu: 'passthrough', redirecting: [] },
    imex: { channels: 0, usableChannels: 0, state: null },
    kernelLog: { readable: true, xids: [] },
    slurm: null,
    bonds: [],
    gpus: {
      driver: '570.1',
      unifiedMemory: true,
      peerMemory: true,
      openDriver: false,
      onBus: 4,
      devices: [0, 1, 2, 3].map((index) => wellGpu({ index, busId: `0${index}:00.0` })),
    },
    files: {
      directories: [
        directory('working directory', '/home/a'),
        directory('temporary files', '/tmp'),
        directory('shared memory', '/dev/shm'),
        directory('cache', '/home/a/.cache/ncclrun'),
      ],
      hanging: [],
      staleSharedMemory: { files: 0, bytes: 0 },
    },
    clock: { now: 0, synchronised: true, monotonic: 0, steppedMs: 0 },
    environment: { nccl: [], visibleGpus: null, engineProblem: null, library: null, libraryVersion: null },
    data: null,
    login: { shell: '/bin/bash', bytes: 0, line: '' },
    unread: {},
    ...changes,
  };
}

export function wellInterface(
  changes: Partial<HostReadings['interfaces'][number]> = {},
): HostReadings['interfaces'][number] {
  return {
    name: 'eth0',
    addresses: ['10.0.0.1'],
    networks: ['10.0.0.0/24'],
    mtu: 9000,
    speedMbps: 100_000,
    up: true,
    duplex: 'full',
    carrierChanges: 2,
    receiveErrors: 0,
    sendErrors: 0,
    receiveDrops: 0,
    sendDrops: 0,
    hardware: true,
    ...changes,
  };
}

export function wellPort(
  changes: Partial<HostReadings['infiniband'][number]> = {},
): HostReadings['infiniband'][number] {
  return {
    card: 'mlx5_0',
    address: '0000:17:00.0',
    port: 1,
    state: 'ACTIVE',
    physicalState: 'LinkUp',
    rateMbps: 400_000,
    linkLayer: 'InfiniBand',
    firmware: '28.39',
    board: 'MT_0',
    lid: 4,
    subnetManagerLid: 1,
    roceAddress: null,
    roceIndices: [],
    counters: { symbol_error: 0, link_downed: 1 },
    ...changes,
  };
}

/** Beside a port of `wellPort({ card, linkLayer: 'Ethernet' })`. */
export function wellRoce(changes: Partial<HostReadings['roce'][number]> = {}): HostReadings['roce'][number] {
  return {
    card: 'mlx5_0',
    port: 1,
    interface: 'eth0',
    mtu: 9000,
    trust: 'dscp',
    hasVlan: false,
    pausing: [3],
    paused: [3],
    notifying: [3],
    reacting: [3],
    ...changes,
  };
}

export function wellPci(changes: Partial<HostReadings['pci'][number]> = {}): HostReadings['pci'][number] {
  return {
    address: '0000:17:00.0',
    kind: 'nic',
    width: 16,
    maximumWidth: 16,
    speed: 32,
    maximumSpeed: 32,
    bottleneck: null,
    readRequestBytes: 4096,
    payloadBytes: 256,
    bridges: [],
    correctableErrors: 0,
    nonfatalErrors: 0,
    fatalErrors: 0,
    ...changes,
  };
}

export function wellGpu(changes: Partial<GpuReading> = {}): GpuReading {
  return {
    index: 0,
    busId: '00:00.0',
    name: 'NVIDIA H100',
    vbios: '96.00',
    eccEnabled: true,
    eccPending: false,
    uncorrectedErrors: 0,
    correctedErrors: 0,
    sramErrors: 0,
    sramWornOut: false,
    repairsPending: [],
    retiredPages: null,
    remappedRows: 0,
    remapPending: false,
    remapFailed: false,
    recoveryAction: 'None',
    persistence: true,
    computeMode: 'Default',
    migEnabled: false,
    fabric: 'Completed',
    domain: null,
    temperature: 40,
    temperatureMargin: 50,
    powerLimitWatts: 700,
    defaultPowerLimitWatts: 700,
    smClockMhz: 1980,
    maximumSmClockMhz: 1980,
    throttled: [],
    throttledMicroseconds: 0,
    pcieReplays: 0,
    processes: [],
    freeBytes: 80e9,
    totalBytes: 81e9,
    activeNvlinks: 18,
    nvlinkSpeeds: [26.562],
    nvlinkErrors: 0,
    ...changes,
  };
}

export function directory(
  use: string,
  path: string,
  changes: Partial<HostReadings['files']['directories'][number]> = {},
) {
  return {
    use,
    path,
    totalBytes: 100 * GIB,
    freeBytes: 50 * GIB,
    freeFiles: 1e6,
    readOnly: false,
    noexec: false,
    writable: true,
    fileSystem: 'ext4',
    ...changes,
  };
}
