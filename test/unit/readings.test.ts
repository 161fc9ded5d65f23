/** What a host reads of itself, from trees as real machines have them. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import * as v from 'valibot';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { hostReadings } from '../../control/readings.ts';
import { readActivity } from '../../worker/readings/activity.ts';
import { collectReadings } from '../../worker/readings/collect.ts';
import { engineProblem } from '../../worker/readings/engine.ts';
import { readEnvironment } from '../../worker/readings/environment.ts';
import { mountsIn, readFiles } from '../../worker/readings/files.ts';
import { gpusInXml } from '../../worker/readings/gpu-xml.ts';
import { readGpus } from '../../worker/readings/gpus.ts';
import { readCgroup, readKernelSettings, readLimits } from '../../worker/readings/limits.ts';
import { readMemory } from '../../worker/readings/memory.ts';
import {
  parseLinks,
  readBonds,
  readInfiniband,
  readInterfaces,
  readVerbsDevices,
} from '../../worker/readings/network.ts';
import { readPci } from '../../worker/readings/pci.ts';
import { runTool } from '../../worker/readings/run-tool.ts';
import { nodeIn } from '../../worker/readings/slurm.ts';
import { readSystem } from '../../worker/readings/system.ts';

let root = '';
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'ncclrun-readings-'));
});
afterEach(() => {
  rmSync(root, { recursive: true });
});

function tree(files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), `${text}\n`);
  }
}

const statLine = (pid: number, state: string): string =>
  `${pid} (a (b) c) ${state} 1 1 1 0 -1 0 0 0 0 0 500 100 0 0 20 0 1 0 1 1`;

function writeProcess(pid: number, parent: number, waitedNs: number): void {
  tree({
    [`proc/${pid}/stat`]: statLine(pid, 'R').replace(' R 1 ', ` R ${parent} `),
    [`proc/${pid}/schedstat`]: `1 ${waitedNs} 1`,
  });
}

const linkText = (address: string): string =>
  JSON.stringify([
    { ifname: 'lo', mtu: 65536 },
    {
      ifname: 'eth0',
      mtu: 9000,
      operstate: 'UP',
      address,
      stats64: { rx: { errors: 1, dropped: 2 }, tx: { errors: 3, dropped: 4 } },
    },
  ]);

function pciFiles(address: string, kind: string, vendor: string, more: Record<string, string> = {}) {
  const files = Object.entries({ class: kind, vendor, ...more });
  return Object.fromEntries(files.map(([name, text]) => [`sys/bus/pci/devices/${address}/${name}`, text]));
}

describe('the readings of a host', () => {
  it('the readings of this machine are what their schema wants', async () => {
    const readings = await collectReadings({ version: '1.2.3', watchMs: 10 });
    expect(v.safeParse(hostReadings, JSON.parse(JSON.stringify(readings))).issues).toBeUndefined();
    expect(readings.version).toBe('1.2.3');
  });

  it('a host that shows nothing has empty readings', async () => {
    const readings = await collectReadings({ version: '1', watchMs: 1, root });
    expect(v.safeParse(hostReadings, JSON.parse(JSON.stringify(readings))).issues).toBeUndefined();
    expect(readings).toMatchObject({
      infiniband: [],
      pci: [],
      gpus: { driver: null, onBus: 0, devices: [] },
    });
    expect(readings.memory.totalBytes).toBeNull();
  });

  it('readings tell system, hypervisor and container', () => {
    tree({
      'proc/cpuinfo': 'flags\t\t: fpu hypervisor sse',
      'proc/sys/kernel/osrelease': '6.1.0-18',
      'etc/os-release': 'NAME=x\nPRETTY_NAME="Debian GNU/Linux 12"',
      '.dockerenv': '',
    });
    expect(readSystem(root)).toMatchObject({
      kernel: '6.1.0-18',
      distribution: 'Debian GNU/Linux 12',
      virtual: true,
      container: true,
    });
  });

  it('processors that are offline, and what processes use, are counted', async () => {
    tree({
      'sys/devices/system/cpu/online': '0-2',
      'sys/devices/system/cpu/present': '0-3',
      'sys/devices/system/cpu/cpu0/cpufreq/scaling_governor': 'powersave',
      'sys/devices/system/cpu/cpu1/cpufreq/scaling_governor': 'powersave',
      'proc/loadavg': '3.50 1 1 1/2 3',
      'proc/stat': 'cpu  10 0 10 100 0 0 0 5 0 0',
      'proc/sys/kernel/pid_max': '4194304',
      'proc/7/stat': statLine(7, 'D'),
      'proc/7/wchan': 'rpc_wait',
      'proc/8/stat': statLine(8, 'Z'),
    });
    const { processors, processes } = await readActivity(root, 1);
    expect(processors).toMatchObject({
      online: 3,
      present: 4,
      governors: ['powersave'],
      load: 3.5,
      busiest: [],
      stolen: null,
    });
    expect(processes).toEqual({
      total: 2,
      maximum: 4_194_304,
      zombies: 1,
      uninterruptible: [{ pid: 7, command: 'a (b) c', place: 'rpc_wait' }],
    });
  });

  it('what a process waits for processors counts as use, and the family of the reader does not', async () => {
    const all = [
      [70, 1],
      [71, 1],
      [process.pid, 71],
      [72, process.pid],
    ] as const;
    for (const [pid, parent] of all) writeProcess(pid, parent, 0);
    const reading = readActivity(root, 20);
    for (const [pid, parent] of all) writeProcess(pid, parent, 1e9);
    const { processors } = await reading;
    expect(processors.busiest.map(({ pid }) => pid)).toEqual([70]);
  });

  it('memory, its nodes and its errors are read', () => {
    tree({
      'proc/meminfo': 'MemTotal:  1024 kB\nMemAvailable: 512 kB\nSwapTotal: 64 kB\nSwapFree: 16 kB',
      'sys/devices/system/node/node0/meminfo': 'Node 0 MemTotal:  1024 kB',
      'sys/devices/system/edac/mc/mc0/ue_count': '1',
      'sys/devices/system/edac/mc/mc1/ue_count': '2',
      'sys/devices/system/edac/mc/mc0/ce_count': '7',
    });
    expect(readMemory(root)).toEqual({
      totalBytes: 2 ** 20,
      availableBytes: 2 ** 19,
      swapUsedBytes: 48 * 1024,
      numaNodeBytes: [2 ** 20],
      hugePageBytes: null,
      uncorrectedErrors: 3,
      correctedErrors: 7,
    });
  });

  it('limits, control groups of both versions and settings are read', () => {
    tree({
      'proc/self/limits':
        'Limit  Soft  Hard  Units\nMax locked memory  unlimited  unlimited  bytes\nMax open files  1024  4096  files',
      'proc/self/cgroup': '0::/slice',
      'sys/fs/cgroup/slice/cpu.max': '150000 100000',
      'sys/fs/cgroup/slice/cpu.stat': 'usage_usec 1\nnr_throttled 12',
      'sys/fs/cgroup/slice/pids.max': 'max',
      'proc/sys/net/ipv4/ip_local_port_range': '32768\t60999',
      'proc/sys/net/ipv4/tcp_rmem': '4096\t131072\t6291456',
      'sys/kernel/mm/transparent_hugepage/enabled': 'always [madvise] never',
      'etc/systemd/logind.conf': '#RemoveIPC=yes\nRemoveIPC=no',
      'etc/systemd/logind.conf.d/10.conf': 'RemoveIPC=yes',
    });
    expect(readLimits(root)).toMatchObject({ lockedMemoryBytes: 'unlimited', openFiles: 1024, stackBytes: null });
    expect(readCgroup(root)).toEqual({
      cores: 1.5,
      memoryBytes: null,
      memoryUsedBytes: null,
      tasks: null,
      tasksNow: null,
      throttledPeriods: 12,
    });
    expect(readKernelSettings(root)).toMatchObject({
      portRange: [32_768, 60_999],
      receiveBufferBytes: 6_291_456,
      sendBufferBytes: null,
      hugePages: 'madvise',
      removesIpc: true,
    });
  });

  it('a control group of version 1 is read', () => {
    tree({
      'proc/self/cgroup': '3:cpu:/a\n2:memory:/a\n1:pids:/a',
      'sys/fs/cgroup/cpu/a/cpu.cfs_quota_us': '50000',
      'sys/fs/cgroup/cpu/a/cpu.cfs_period_us': '100000',
      'sys/fs/cgroup/memory/a/memory.limit_in_bytes': '9223372036854771712',
      'sys/fs/cgroup/pids/a/pids.max': '99',
      'sys/fs/cgroup/pids/a/pids.current': '9',
    });
    expect(readCgroup(root)).toMatchObject({ cores: 0.5, memoryBytes: null, tasks: 99, tasksNow: 9 });
  });

  it('what ip tells of an interface counts, and /sys where it is the same one', () => {
    tree({
      'sys/class/net/eth0/address': '02:00:00:00:00:01',
      'sys/class/net/eth0/speed': '100000',
      'sys/class/net/eth0/duplex': 'full',
      'sys/class/net/eth0/carrier_changes': '3',
      'sys/class/net/eth0/device/vendor': '0x15b3',
    });
    const listed = { eth0: [{ address: '10.0.5.1', cidr: '10.0.5.1/22' }] };
    expect(readInterfaces(root, parseLinks(linkText('02:00:00:00:00:01')), listed)).toEqual([
      {
        name: 'eth0',
        addresses: ['10.0.5.1'],
        networks: ['10.0.4.0/22'],
        mtu: 9000,
        speedMbps: 100_000,
        up: true,
        duplex: 'full',
        carrierChanges: 3,
        receiveErrors: 1,
        sendErrors: 3,
        receiveDrops: 2,
        sendDrops: 4,
        hardware: true,
      },
    ]);
    expect(readInterfaces(root, parseLinks(linkText('02:00:00:00:00:02')), listed)).toMatchObject([
      { name: 'eth0', mtu: 9000, speedMbps: null, hardware: false },
    ]);
    expect(parseLinks('nonsense')).toEqual([]);
  });

  it('/sys alone serves where there is no ip', () => {
    tree({
      'sys/class/net/ib0/mtu': '4092',
      'sys/class/net/ib0/operstate': 'up',
      'sys/class/net/ib0/statistics/rx_errors': '5',
    });
    expect(readInterfaces(root, [], {})).toMatchObject([
      { name: 'ib0', mtu: 4092, up: true, receiveErrors: 5, sendErrors: 0 },
    ]);
  });

  it('ports of InfiniBand with their counters are read', () => {
    const port = 'sys/class/infiniband/mlx5_0/ports/1';
    tree({
      [`${port}/state`]: '4: ACTIVE',
      [`${port}/phys_state`]: '5: LinkUp',
      [`${port}/rate`]: '400 Gb/sec (4X NDR)',
      [`${port}/link_layer`]: 'InfiniBand',
      [`${port}/lid`]: '0x1f',
      [`${port}/sm_lid`]: '0x0',
      [`${port}/counters/symbol_error`]: '3',
      [`${port}/hw_counters/out_of_sequence`]: '4',
      'sys/class/infiniband/mlx5_0/fw_ver': '28.39.1002',
    });
    expect(readInfiniband(root)).toEqual([
      {
        card: 'mlx5_0',
        address: null,
        port: 1,
        state: 'ACTIVE',
        physicalState: 'LinkUp',
        rateMbps: 400_000,
        linkLayer: 'InfiniBand',
        firmware: '28.39.1002',
        board: null,
        lid: 31,
        subnetManagerLid: 0,
        roceAddress: null,
        roceIndices: [],
        counters: { symbol_error: 3, out_of_sequence: 4 },
      },
    ]);
  });

  it('a RoCE port has an address where its interface has one', () => {
    const roce = 'sys/class/infiniband/mlx5_1/ports/1';
    tree({
      [`${roce}/link_layer`]: 'Ethernet',
      [`${roce}/gid_attrs/types/0`]: 'RoCE v2',
      [`${roce}/gids/0`]: 'fe80:0000:0000:0000:0ac0:ebff:fe00:0001',
    });
    expect(readInfiniband(root)).toMatchObject([{ roceAddress: false }]);
    tree({
      [`${roce}/gid_attrs/types/3`]: 'RoCE v2',
      [`${roce}/gids/3`]: '0000:0000:0000:0000:0000:ffff:0a00:0001',
    });
    expect(readInfiniband(root)).toMatchObject([{ roceAddress: true }]);
  });

  it('slaves of bonds and files of verbs are read', () => {
    tree({
      'proc/net/bonding/bond0':
        'Ethernet Channel Bonding Driver\nMII Status: up\n\nSlave Interface: eth0\nMII Status: up\n\nSlave Interface: eth1\nMII Status: down',
      'dev/infiniband/uverbs0': '',
      'dev/infiniband/rdma_cm': '',
    });
    expect(readBonds(root)).toEqual([{ name: 'bond0', slaves: ['eth0', 'eth1'], down: ['eth1'] }]);
    expect(readVerbsDevices(root)).toEqual({ present: 1, usable: 1 });
  });

  it('GPUs and network cards of the PCI bus are read, and nothing else', () => {
    tree({
      ...pciFiles('0000:17:00.0', '0x030200', '0x10de', {
        current_link_width: '8',
        max_link_width: '16',
        aer_dev_fatal: 'TOTAL_ERR_FATAL 2',
      }),
      ...pciFiles('0000:18:00.0', '0x020700', '0x15b3', {
        current_link_speed: '16.0 GT/s PCIe',
        max_link_speed: '32.0 GT/s PCIe',
        current_link_width: '0',
      }),
      ...pciFiles('0000:19:00.0', '0x030000', '0x1a03'),
      ...pciFiles('0000:20:00.0', '0x010802', '0x144d'),
    });
    expect(readPci(root)).toMatchObject([
      { address: '0000:17:00.0', kind: 'gpu', width: 8, maximumWidth: 16, fatalErrors: 2 },
      { address: '0000:18:00.0', kind: 'nic', width: null, speed: 16, maximumSpeed: 32, fatalErrors: null },
    ]);
  });

  it('readings tell variables of the login and of files with their place', () => {
    tree({ 'etc/nccl.conf': '# x\nNCCL_ALGO=Ring' });
    const variables = {
      NCCL_DEBUG: 'TRACE',
      NCCL_RAS_ADDR: 'localhost:1',
      CUDA_VISIBLE_DEVICES: '0',
      LD_PRELOAD: '/a/libnccl.so.2',
    };
    expect(readEnvironment(root, variables)).toEqual({
      nccl: [
        { name: 'NCCL_DEBUG', value: 'TRACE', source: 'environment' },
        { name: 'NCCL_ALGO', value: 'Ring', source: '/etc/nccl.conf' },
      ],
      visibleGpus: '0',
      library: '/a/libnccl.so.2',
      libraryVersion: null,
    });
  });
});

describe('the GPUs', () => {
  it('GPUs without a driver are counted', async () => {
    tree(pciFiles('0000:17:00.0', '0x030200', '0x10de'));
    expect(await readGpus(root, () => undefined)).toMatchObject({ driver: null, onBus: 1, devices: null });
  });

  it('older drivers name reasons, power and errors otherwise', () => {
    const [gpu] = gpusInXml(`<gpu id="00000000:3B:00.0"><product_name>Tesla V100</product_name>
      <clocks_throttle_reasons><clocks_throttle_reason_hw_power_brake_slowdown>Active</clocks_throttle_reason_hw_power_brake_slowdown></clocks_throttle_reasons>
      <ecc_errors><volatile><single_bit><device_memory>2</device_memory><total>2</total></single_bit>
      <double_bit><device_memory>1</device_memory><total>1</total></double_bit></volatile></ecc_errors>
      <retired_pages><double_bit_retirement><retired_count>3</retired_count></double_bit_retirement></retired_pages>
      <power_readings><power_limit>250.00 W</power_limit><default_power_limit>300.00 W</default_power_limit></power_readings>
      <temperature><gpu_temp>44 C</gpu_temp></temperature></gpu>`);
    expect(gpu).toMatchObject({
      index: 0,
      busId: '00000000:3B:00.0',
      uncorrectedErrors: 1,
      correctedErrors: 2,
      retiredPages: 3,
      powerLimitWatts: 250,
      defaultPowerLimitWatts: 300,
      throttled: ['hw_power_brake_slowdown'],
      temperature: 44,
      temperatureMargin: null,
      fabric: null,
      migEnabled: null,
    });
  });
});

describe('files and tools', () => {
  it('mounts are read with their odd names, later ones instead of earlier ones', () => {
    const text = 'a / ext4 rw,relatime 0 0\nb /my\\040data nfs4 ro 0 0\nc /my\\040data xfs rw,noexec 0 0';
    expect(mountsIn(text)).toEqual([
      { source: 'a', path: '/', fileSystem: 'ext4', options: ['rw', 'relatime'] },
      { source: 'c', path: '/my data', fileSystem: 'xfs', options: ['rw', 'noexec'] },
    ]);
  });

  it('a directory that is not there yet is judged by the nearest that is', async () => {
    const { directories, hanging } = await readFiles([['cache', join(root, 'not/there')]]);
    expect(directories).toMatchObject([{ use: 'cache', readOnly: false, writable: true }]);
    expect(directories[0]?.totalBytes).toBeGreaterThan(0);
    expect(hanging).toEqual([]);
  });

  it('a program that loads with the engine ends with status 2, and one that does not otherwise', async () => {
    tree({ loads: '#!/bin/sh\nexit 2', misses: '#!/bin/sh\nexit 127' });
    for (const name of ['loads', 'misses']) chmodSync(join(root, name), 0o755);
    expect(await engineProblem(join(root, 'loads'))).toBeNull();
    expect(await engineProblem(join(root, 'misses'))).toMatch(/misses ended with status 127$/u);
  });

  it('readings tell what Slurm says of a host', () => {
    expect(
      nodeIn(
        'NodeName=a Arch=x86_64 CPUTot=64 Gres=gpu:h100:8(S:0-1),nic:2 State=IDLE+DRAIN ThreadsPerCore=1 Reason=bad GPU [root@2026-01-01T00:00:00]',
      ),
    ).toEqual({ state: 'IDLE+DRAIN', reason: 'bad GPU', gpus: 8 });
    expect(nodeIn('NodeName=a State=MIXED Gres=(null)')).toEqual({ state: 'MIXED', reason: null, gpus: null });
    expect(nodeIn('Node a not found')).toBeNull();
  });

  it('a tool that hangs is left behind after its time, and one that is not there is a problem', async () => {
    expect(await runTool('sleep', ['600'], 50)).toEqual({ problem: 'sleep has not ended within 0.05 s' });
    expect(await runTool('sh', ['-c', 'while :; do :; done'], 25)).toEqual({
      problem: 'sh has not ended within 0.025 s',
    });
    expect(await runTool('/no/such/tool', [], 1000)).toEqual({ problem: '/no/such/tool cannot be run' });
    expect(await runTool('sh', ['-c', 'exit 3'], 10_000)).toEqual({ problem: 'sh ended with status 3' });
    expect(await runTool('echo', ['yes'], 10_000)).toEqual({ output: 'yes' });
  });
});
