/** What doctor says of a host's readings: each fault by its check, with a remedy; of a host that is well, nothing. */
import { describe, expect, it, test } from 'vitest';
import type { GpuReading, HostReadings } from '../../control/readings.ts';
import { allChecks } from '../../launcher/doctor/checks/all.ts';
import type { Finding } from '../../launcher/doctor/finding.ts';
import { runChecks } from '../../launcher/doctor/run-checks.ts';
import { directory, wellGpu, wellHost, wellInterface, wellPci, wellPort } from '../rig/readings.ts';

const GIB = 2 ** 30;

/** Beside two others that are well. */
function besideOthers(readings: HostReadings): Finding[] {
  const machine = (machineName: string) => ({ ...readings.system, machineName });
  const hosts = [
    { name: 'h1', readings: wellHost({ system: { ...wellHost().system, machineName: 'h1' } }) },
    { name: 'h2', readings: wellHost({ system: { ...wellHost().system, machineName: 'h2' } }) },
    { name: 'h3', readings: { ...readings, system: machine('h3') } },
  ];
  return runChecks(allChecks, hosts).filter(({ answer }) => answer !== 'ok');
}

function gpuWith(changes: Partial<GpuReading>): Partial<HostReadings> {
  const { gpus } = wellHost();
  const devices = (gpus.devices ?? []).map((gpu, index) => (index === 2 ? wellGpu({ ...gpu, ...changes }) : gpu));
  return { gpus: { ...gpus, devices } };
}

const part = <Name extends keyof HostReadings>(
  name: Name,
  changes: Partial<HostReadings[Name]>,
): Partial<HostReadings> => wellHost({ [name]: { ...Object(wellHost()[name]), ...changes } });

const withDirectory = (path: string, changes: Parameters<typeof directory>[2]): Partial<HostReadings> => {
  const { files } = wellHost();
  return {
    files: {
      ...files,
      directories: files.directories.map((one) => (one.path === path ? { ...one, ...changes } : one)),
    },
  };
};

const withXid = (changes: Partial<HostReadings['kernelLog']['xids'][number]>): Partial<HostReadings> => {
  const xid = { code: 79, nvswitch: false, address: '0000:02:00', message: 'x', hoursAgo: 3, ...changes };
  return { kernelLog: { readable: true, xids: [xid] } };
};

type Row = readonly [
  what: string,
  changes: Partial<HostReadings>,
  check: string,
  answer: Finding['answer'],
  message: RegExp,
];

const rows: readonly Row[] = [
  [
    'another version',
    { version: '0.9.0' },
    'ncclrun.version',
    'fail',
    /^ncclrun 0\.9\.0; h1, h2|^ncclrun 0\.9\.0; h\[1-2\]: 1\.0\.0$/u,
  ],
  ['another kernel', part('system', { kernel: '5.4' }), 'os.same', 'note', /kernel 5\.4; /u],
  ['a processor that is offline', part('processors', { online: 63 }), 'cpu.count', 'warn', /63 of 64 processors/u],
  ['a slow governor', part('processors', { governors: ['powersave'] }), 'cpu.governor', 'warn', /powersave/u],
  [
    'a busy process',
    part('processors', { usable: 2, busiest: [{ pid: 7, command: 'miner', cores: 0.9 }] }),
    'cpu.load',
    'warn',
    /0\.9 of 2 cores: miner \(process 7/u,
  ],
  ['a hypervisor that takes time', part('processors', { stolen: 0.05 }), 'cpu.stolen', 'warn', /5 % of the time/u],
  ['little free memory', part('memory', { availableBytes: 16 * GIB }), 'memory.free', 'warn', /16 GiB of 512 GiB/u],
  [
    'a missing module',
    part('memory', { totalBytes: 448 * GIB, availableBytes: 440 * GIB }),
    'memory.free',
    'warn',
    /^memory 450 GiB; /u,
  ],
  [
    'memory that is swapped',
    part('memory', { swapUsedBytes: GIB, swappedPages: 3 }),
    'memory.swap',
    'warn',
    /1 GiB are swapped out, and 3 pages/u,
  ],
  ['uncorrected errors of memory', part('memory', { uncorrectedErrors: 1 }), 'memory.ecc', 'fail', /1 errors/u],
  ['many corrected errors', part('memory', { correctedErrors: 101 }), 'memory.ecc', 'note', /corrected 101/u],
  [
    'other NUMA nodes',
    part('memory', { numaNodeBytes: [512 * GIB] }),
    'memory.numa',
    'warn',
    /^NUMA nodes 1 with 512 GiB/u,
  ],
  [
    'a process that nothing ends',
    part('processes', { uninterruptible: [{ pid: 9, command: 'cp', place: 'nfs_wait' }] }),
    'process.uninterruptible',
    'warn',
    /cp \(process 9\) waits in nfs_wait/u,
  ],
  ['zombies', part('processes', { zombies: 1001 }), 'process.count', 'warn', /1001 zombies/u],
  [
    'a full table of processes',
    part('processes', { total: 27_000, maximum: 32_768 }),
    'process.count',
    'warn',
    /27000 processes of at most 32768/u,
  ],
  [
    'a full control group',
    part('cgroup', { tasks: 100, tasksNow: 81 }),
    'process.count',
    'warn',
    /81 tasks of at most 100/u,
  ],
  ['a control group that stops ranks', part('cgroup', { cores: 63.5 }), 'cgroup.processors', 'warn', /63\.5 cores/u],
  [
    'little memory that may be locked',
    part('limits', { lockedMemoryBytes: 65_536 }),
    'limits.locked-memory',
    'fail',
    /64 KiB/u,
  ],
  ['few open files', part('limits', { openFiles: 1024 }), 'limits.open-files', 'warn', /1024 open files/u],
  ['an unlimited stack', part('limits', { stackBytes: 'unlimited' }), 'limits.stack', 'warn', /unlimited/u],
  ['a full /dev/shm', withDirectory('/dev/shm', { freeBytes: 1 }), 'shared-memory.size', 'fail', /1 bytes of 100 GiB/u],
  [
    'a small /dev/shm',
    withDirectory('/dev/shm', { totalBytes: 64 * 2 ** 20, freeBytes: 64 * 2 ** 20 }),
    'shared-memory.size',
    'warn',
    /64 MiB of 64 MiB/u,
  ],
  [
    'no /dev/shm',
    withDirectory('/dev/shm', { totalBytes: null, freeBytes: null }),
    'shared-memory.size',
    'fail',
    /no \/dev\/shm/u,
  ],
  [
    'left shared memory',
    { files: { ...wellHost().files, staleSharedMemory: { files: 3, bytes: GIB } } },
    'shared-memory.stale',
    'note',
    /3 files of ended programs, 1 GiB/u,
  ],
  ['RemoveIPC', part('kernelSettings', { removesIpc: true }), 'login.remove-ipc', 'warn', /RemoveIPC/u],
  ['a strict ptrace_scope', part('kernelSettings', { ptraceScope: 2 }), 'system.ptrace', 'note', /is 2/u],
  ['few ports', part('kernelSettings', { portRange: [50_000, 50_099] }), 'network.ports', 'warn', /^100 ports/u],
  [
    'small buffers of TCP',
    part('kernelSettings', { sendBufferBytes: 2 ** 20 }),
    'network.buffers',
    'warn',
    /1 MiB only/u,
  ],
  ['no /dev/nvidia-uvm', part('gpus', { unifiedMemory: false }), 'gpu.unified-memory', 'fail', /nvidia-uvm/u],
  [
    'a clock that nobody keeps',
    part('clock', { synchronised: false }),
    'time.synchronised',
    'warn',
    /not synchronised/u,
  ],
  [
    'a clock of which nobody knows',
    part('clock', { synchronised: null }),
    'time.synchronised',
    'unknown',
    /nobody tells/u,
  ],
  [
    'a mount that hangs',
    { files: { ...wellHost().files, hanging: [{ path: '/data', fileSystem: 'nfs4', source: 'fs:/data' }] } },
    'files.hang',
    'fail',
    /nfs4 from fs:\/data does not answer/u,
  ],
  [
    'a full directory',
    withDirectory('/tmp', { freeBytes: 2 ** 20 }),
    'files.space',
    'warn',
    /1 MiB of 100 GiB are free \(temporary files\)/u,
  ],
  ['no room for files', withDirectory('/tmp', { freeFiles: 9 }), 'files.space', 'warn', /room for 9 more files/u],
  [
    'a read-only directory',
    withDirectory('/tmp', { readOnly: true, writable: false }),
    'files.writable',
    'fail',
    /mounted read-only/u,
  ],
  [
    'a cache of others',
    withDirectory('/home/a/.cache/ncclrun', { writable: false }),
    'files.writable',
    'warn',
    /cannot be written to/u,
  ],
  [
    'a cache without programs',
    withDirectory('/home/a/.cache/ncclrun', { noexec: true }),
    'files.exec',
    'fail',
    /noexec/u,
  ],
  ['another MTU', { interfaces: [wellInterface({ mtu: 1500 })] }, 'network.mtu', 'warn', /1 × 1500; /u],
  ['a slower card', { interfaces: [wellInterface({ speedMbps: 10_000 })] }, 'network.speed', 'fail', /1 × 10 Gb\/s; /u],
  ['half duplex', { interfaces: [wellInterface({ duplex: 'half' })] }, 'network.speed', 'fail', /half duplex/u],
  [
    'a cable that comes and goes',
    { interfaces: [wellInterface({ carrierChanges: 21 })] },
    'network.carrier',
    'warn',
    /21 times/u,
  ],
  [
    'a port that is down',
    { infiniband: [wellPort(), wellPort({ card: 'mlx5_1', state: 'DOWN', physicalState: 'LinkErrorRecovery' })] },
    'infiniband.state',
    'fail',
    /is down \(down, linkerrorrecovery\)/u,
  ],
  ['fewer ports', { infiniband: [] }, 'infiniband.state', 'fail', /./u],
  [
    'a port that runs slowly',
    { infiniband: [wellPort(), wellPort({ card: 'mlx5_1', rateMbps: 200_000 })] },
    'infiniband.rate',
    'fail',
    /200 Gb\/s, others here at 400/u,
  ],
  ['other firmware', { infiniband: [wellPort({ firmware: '28.30' })] }, 'infiniband.firmware', 'warn', /28\.30/u],
  [
    'no subnet manager',
    { infiniband: [wellPort({ subnetManagerLid: 0 })] },
    'infiniband.subnet-manager',
    'fail',
    /no subnet manager/u,
  ],
  [
    'a flapping port',
    { infiniband: [wellPort({ counters: { link_downed: 5 } })] },
    'infiniband.downed',
    'warn',
    /5 times/u,
  ],
  [
    'symbol errors',
    { infiniband: [wellPort({ counters: { symbol_error: 8 } })] },
    'infiniband.errors',
    'note',
    /symbol_error 8/u,
  ],
  ['missing lanes', { pci: [wellPci({ width: 8 }), wellPci()] }, 'pci.width', 'fail', /8 lanes of 16/u],
  ['a slow link', { pci: [wellPci({ speed: 16 }), wellPci()] }, 'pci.speed', 'warn', /16 GT\/s of 32/u],
  ['errors on PCIe', { pci: [wellPci({ fatalErrors: 1 })] }, 'pci.errors', 'fail', /1 fatal/u],
  ['corrected errors on PCIe', { pci: [wellPci({ correctableErrors: 101 })] }, 'pci.errors', 'note', /corrected 101/u],
  ['a GPU that fell off the bus', part('gpus', { onBus: 5 }), 'gpu.count', 'fail', /4 GPUs of 5/u],
  ['a driver that is silent', part('gpus', { devices: null }), 'gpu.count', 'fail', /cannot be asked/u],
  ['no driver', part('gpus', { driver: null, devices: null }), 'gpu.count', 'unknown', /no driver/u],
  ['another driver', part('gpus', { driver: '550.1' }), 'gpu.driver', 'fail', /550\.1/u],
  ['another VBIOS', gpuWith({ vbios: '95.00' }), 'gpu.firmware', 'warn', /95\.00/u],
  ['uncorrected errors', gpuWith({ uncorrectedErrors: 2 }), 'gpu.ecc', 'fail', /2 errors/u],
  ['a pending change', gpuWith({ eccPending: true }), 'gpu.ecc', 'warn', /waits for a restart/u],
  ['error correction that is off', gpuWith({ eccEnabled: false }), 'gpu.ecc', 'warn', /is off/u],
  [
    'a row that cannot be replaced',
    gpuWith({ remapFailed: true }),
    'gpu.remapped-rows',
    'fail',
    /could not be replaced/u,
  ],
  ['a row that waits', gpuWith({ remapPending: true }), 'gpu.remapped-rows', 'fail', /waits to be replaced/u],
  ['too many rows', gpuWith({ remappedRows: 513 }), 'gpu.remapped-rows', 'fail', /513 rows/u],
  ['what the driver wants', gpuWith({ recoveryAction: 'Reset' }), 'gpu.recovery', 'fail', /asks for: Reset/u],
  ['no persistence', gpuWith({ persistence: false }), 'gpu.persistence', 'warn', /off on 1 GPUs/u],
  ['a prohibited GPU', gpuWith({ computeMode: 'Prohibited' }), 'gpu.compute-mode', 'fail', /Prohibited/u],
  ['an exclusive GPU', gpuWith({ computeMode: 'Exclusive_Process' }), 'gpu.compute-mode', 'note', /Exclusive_Process/u],
  [
    'thermal throttling',
    gpuWith({ throttled: ['hw_thermal_slowdown'] }),
    'gpu.throttled',
    'fail',
    /hw_thermal_slowdown/u,
  ],
  ['a power cap', gpuWith({ throttled: ['sw_power_cap'] }), 'gpu.throttled', 'note', /sw_power_cap/u],
  ['locked clocks', gpuWith({ maximumSmClockMhz: 1500 }), 'gpu.clocks', 'warn', /1500 MHz.* 1980/u],
  ['a hot GPU', gpuWith({ temperature: 56 }), 'gpu.temperature', 'warn', /56 °C hot, others here 40/u],
  ['a GPU that is too hot', gpuWith({ temperature: 85, temperatureMargin: null }), 'gpu.temperature', 'fail', /85 °C/u],
  ['a lower power limit', gpuWith({ powerLimitWatts: 500 }), 'gpu.power', 'warn', /500 W, the default is 700/u],
  ['used memory', gpuWith({ freeBytes: 40e9 }), 'gpu.memory', 'warn', /are free/u],
  ['a missing NVLink', gpuWith({ activeNvlinks: 17 }), 'nvlink.count', 'fail', /17 of its NVLinks are up, 18/u],
  ['errors of NVLinks', gpuWith({ nvlinkErrors: 5 }), 'nvlink.errors', 'note', /5 errors/u],
  [
    'an Xid',
    withXid({ code: 79, message: 'GPU has fallen off the bus' }),
    'gpu.xid',
    'fail',
    /^Xid 79: GPU has fallen off the bus, 3 h ago$/u,
  ],
  [
    'an Xid without a message',
    withXid({ code: 48, message: '' }),
    'gpu.xid',
    'fail',
    /^Xid 48: memory has lost two bits/u,
  ],
  ['an Xid of a program', withXid({ code: 31 }), 'gpu.xid', 'note', /^Xid 31: /u],
  [
    'an error of an NVSwitch',
    withXid({ nvswitch: true, code: 20_034, message: 'Fatal, Link 30' }),
    'gpu.xid',
    'fail',
    /SXid 20034/u,
  ],
  [
    'a log that may not be read',
    { kernelLog: { readable: false, xids: [] } },
    'gpu.xid',
    'note',
    /may not read the kernel’s log/u,
  ],
  ['on-chip memory with errors', gpuWith({ sramErrors: 5 }), 'gpu.sram', 'warn', /5 uncorrected errors in its life/u],
  ['on-chip memory that is worn out', gpuWith({ sramWornOut: true }), 'gpu.sram', 'fail', /more errors than/u],
  [
    'a repair that waits',
    gpuWith({ repairsPending: ['tpc_repair_pending'] }),
    'gpu.repairs',
    'fail',
    /tpc repair pending/u,
  ],
  [
    'memory beyond repair',
    gpuWith({ repairsPending: ['unrepairable_memory'] }),
    'gpu.repairs',
    'fail',
    /cannot be repaired/u,
  ],
  ['retired pages', gpuWith({ retiredPages: 16 }), 'gpu.retired-pages', 'warn', /16 pages/u],
  ['too many retired pages', gpuWith({ retiredPages: 63 }), 'gpu.retired-pages', 'fail', /63 pages/u],
  ['a divided GPU', gpuWith({ migEnabled: true }), 'gpu.mig', 'fail', /divided \(MIG\)/u],
  [
    'an NVLink that runs slower',
    gpuWith({ nvlinkSpeeds: [13.281, 26.562] }),
    'nvlink.speed',
    'fail',
    /13\.281 GB\/s, others here at 26\.562/u,
  ],
  [
    'a GPU outside of the fabric',
    gpuWith({ fabric: 'In Progress' }),
    'nvlink.fabric',
    'fail',
    /not joined the fabric.*In Progress/u,
  ],
  [
    'a GPU that is nearly too hot',
    gpuWith({ temperatureMargin: 4 }),
    'gpu.temperature',
    'warn',
    /slows down at 4 more/u,
  ],
  [
    'programs of others',
    gpuWith({ processes: [{ pid: 12, command: 'python3', bytes: 2 * GIB }] }),
    'gpu.memory',
    'warn',
    /used by python3 \(process 12, 2 GiB\)/u,
  ],
  ['few processes', part('limits', { processes: 1000 }), 'limits.processes', 'warn', /at most 1000 processes/u],
  [
    'a slow bridge',
    { pci: [wellPci({ bottleneck: { address: '0000:15:01.0', width: 8, speed: 16 } }), wellPci()] },
    'pci.bottleneck',
    'warn',
    /bridge 0000:15:01\.0 above it has 8 lanes of 16 GT\/s/u,
  ],
  [
    'bridges that redirect',
    { pci: [wellPci(), wellPci({ kind: 'gpu' })], pciBus: { iommu: null, redirecting: ['0000:15:01.0'] } },
    'pci.redirected',
    'warn',
    /\(ACS\) of 0000:15:01\.0 sends/u,
  ],
  [
    'bridges that only root may read',
    { pci: [wellPci(), wellPci({ kind: 'gpu' })], pciBus: { iommu: null, redirecting: null } },
    'pci.redirected',
    'note',
    /only root may read/u,
  ],
  [
    'an IOMMU that translates',
    part('pciBus', { iommu: 'translated' }),
    'pci.iommu',
    'warn',
    /translates every access/u,
  ],
  [
    'small reads',
    { pci: [wellPci({ readRequestBytes: 512 })] },
    'pci.read-request',
    'note',
    /reads 512 bytes at once/u,
  ],
  ['no GPUDirect', part('gpus', { peerMemory: false }), 'gpudirect.rdma', 'warn', /nvidia-peermem is not loaded/u],
  [
    'no files of verbs',
    { verbsDevices: { present: 0, usable: 0 } },
    'infiniband.device-files',
    'fail',
    /no \/dev\/infiniband/u,
  ],
  [
    'files of verbs for others',
    { verbsDevices: { present: 2, usable: 1 } },
    'infiniband.device-files',
    'fail',
    /open 1 of 2/u,
  ],
  [
    'a RoCE port without an address',
    { infiniband: [wellPort({ linkLayer: 'Ethernet', roceAddress: false })] },
    'roce.address',
    'fail',
    /no address for RoCE v2/u,
  ],
  [
    'a bond with a slave that is down',
    { bonds: [{ name: 'bond0', slaves: ['eth0', 'eth1'], down: ['eth1'] }] },
    'network.bond',
    'warn',
    /^eth1 of its 2 slaves is down/u,
  ],
  [
    'cards in one subnet',
    { interfaces: [wellInterface(), wellInterface({ name: 'eth1' })] },
    'network.shared-subnet',
    'warn',
    /^eth0, eth1 are in 10\.0\.0\.0\/24/u,
  ],
  ['moved memory', part('kernelSettings', { numaBalancing: 1 }), 'memory.numa-balancing', 'note', /moves memory/u],
  ['other huge pages', part('kernelSettings', { hugePages: 'always' }), 'memory.huge-pages', 'note', /pages always; /u],
  [
    'a variable that slows down',
    {
      environment: {
        nccl: [{ name: 'NCCL_P2P_DISABLE', value: '1', source: '/etc/nccl.conf' }],
        visibleGpus: null,
        engineProblem: null,
        library: null,
      },
    },
    'environment.forced',
    'warn',
    /NCCL_P2P_DISABLE=1 \(\/etc\/nccl\.conf\)/u,
  ],
  [
    'hidden GPUs',
    { environment: { nccl: [], visibleGpus: '0,1', engineProblem: null, library: null } },
    'environment.visible-gpus',
    'warn',
    /shows 2 GPUs of 4/u,
  ],
  [
    'an engine that cannot be loaded',
    part('environment', { engineProblem: 'ncclrun-perf ended with status 127' }),
    'environment.engine',
    'fail',
    /cannot be loaded: ncclrun-perf ended with status 127/u,
  ],
  [
    'a host that Slurm gives to nobody',
    { slurm: { state: 'IDLE+DRAIN', reason: 'bad GPU', gpus: 4 } },
    'slurm.state',
    'warn',
    /IDLE\+DRAIN \(bad GPU\)/u,
  ],
  [
    'a host of which Slurm expects more GPUs',
    { slurm: { state: 'IDLE', reason: null, gpus: 8 } },
    'slurm.gpus',
    'fail',
    /has 8 GPUs.*the driver 4/u,
  ],
  [
    'another NCCL',
    { environment: { nccl: [], visibleGpus: null, engineProblem: null, library: '/opt/libnccl.so.2' } },
    'environment.library',
    'note',
    /\/opt\/libnccl\.so\.2/u,
  ],
];

const ofVersion = (name: string, version: string) => ({
  name,
  readings: wellHost({ version, system: { ...wellHost().system, machineName: name } }),
});

const stealing = (machineName: string, stolen: number, overSeconds = 1) => ({
  name: machineName,
  readings: wellHost({
    system: { ...wellHost().system, machineName },
    processors: { ...wellHost().processors, stolen, overSeconds },
  }),
});

const xidsOf = (changes: Partial<HostReadings>) =>
  besideOthers(wellHost(changes)).flatMap(({ check, message }) => (check === 'gpu.xid' ? [message] : []));

describe('the checks of doctor', () => {
  it('hosts that are well have no complaint', () => {
    expect(besideOthers(wellHost())).toEqual([]);
  });

  test.each(rows)('doctor names %s', (_what, changes, check, answer, message) => {
    const found = besideOthers(wellHost(changes)).filter(
      (finding) => finding.check === check && finding.answer === answer,
    );
    expect(found.map((finding) => finding.message)).toContainEqual(expect.stringMatching(message));
    expect(found.map(({ host }) => host)).toEqual(found.map(() => 'h3'));
    if (answer !== 'note') expect(found.every(({ remedy }) => remedy !== null && remedy !== '')).toBe(true);
  });

  it('every check has a row here, but for what hosts have in common', () => {
    const named = new Set(rows.map(([, , check]) => check));
    expect(allChecks.map(({ id }) => id).filter((id) => !named.has(id))).toEqual(['name.unique']);
  });

  it('the checks are tested at the borders of what they name', () => {
    const checksOf = (changes: Partial<HostReadings>) => besideOthers(wellHost(changes)).map(({ check }) => check);
    expect(checksOf(withDirectory('/tmp', { freeFiles: 1000 }))).toEqual([]);
    expect(checksOf(withDirectory('/tmp', { freeFiles: 999 }))).toEqual(['files.space']);
    expect(checksOf(withDirectory('/tmp', { freeFiles: 0 }))).toEqual([]);
    const { gpus } = wellHost();
    const unlike = ['1', '2', '3'].map((vbios, index) => wellGpu({ index, vbios }));
    const three = besideOthers(wellHost({ gpus: { ...gpus, onBus: 3, devices: unlike } }));
    expect(three.filter(({ check }) => check === 'gpu.firmware')).toHaveLength(3);
    const two = besideOthers(wellHost({ gpus: { ...gpus, onBus: 2, devices: unlike.slice(1) } }));
    expect(two.filter(({ check }) => check === 'gpu.firmware')).toEqual([]);
    const none = { nccl: [], visibleGpus: '', engineProblem: null, library: null };
    const one = besideOthers(wellHost({ gpus: { ...gpus, onBus: 1, devices: [wellGpu()] }, environment: none }));
    expect(one.map(({ message }) => message)).toContain('CUDA_VISIBLE_DEVICES= shows 0 GPUs of 1');
  });

  it('a hypervisor that takes as much from the others is a note, and a moment of it nothing', () => {
    const found = (...hosts: ReturnType<typeof stealing>[]) =>
      runChecks(allChecks, hosts).filter(({ check, answer }) => check === 'cpu.stolen' && answer !== 'ok');
    expect(found(stealing('a', 0.05), stealing('b', 0.04), stealing('c', 0.05)).map(({ answer }) => answer)).toEqual([
      'note',
      'note',
      'note',
    ]);
    expect(found(stealing('a', 0.05), stealing('b', 0.01), stealing('c', 0.01))).toMatchObject([
      { answer: 'warn', host: 'a' },
    ]);
    expect(found(stealing('a', 0.05, 0.05))).toEqual([]);
  });

  it('errors of yesterday are no finding, and equal ones are counted', () => {
    expect(xidsOf(withXid({ hoursAgo: 25 }))).toEqual([]);
    const xid = { code: 74, nvswitch: false, address: '0000:02:00', message: 'NVLink', hoursAgo: 0.1 };
    expect(xidsOf({ kernelLog: { readable: true, xids: [xid, xid, { ...xid, address: '0000:03:00' }] } })).toEqual([
      '2 times, Xid 74: NVLink, within the last hour',
      'Xid 74: NVLink, within the last hour',
    ]);
    expect(xidsOf({ ...withXid({}), gpus: { ...wellHost().gpus, onBus: 0 } })).toEqual([]);
  });

  it('two entries that are one machine are named', () => {
    const readings = wellHost();
    const hosts = [
      { name: 'a', readings },
      { name: 'b', readings },
    ];
    const twins = runChecks(allChecks, hosts).filter(({ answer }) => answer === 'fail');
    expect(twins.map(({ check, host }) => [check, host])).toEqual([
      ['name.unique', 'a'],
      ['name.unique', 'b'],
    ]);
  });

  it('nobody is blamed where two halves differ', () => {
    const bad = runChecks(allChecks, [ofVersion('a', '1'), ofVersion('b', '2')]).filter(
      ({ answer }) => answer !== 'ok',
    );
    expect(bad).toMatchObject([
      { check: 'ncclrun.version', host: null, message: 'hosts differ in ncclrun: a: 1; b: 2' },
    ]);
  });
});
