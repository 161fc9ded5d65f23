/** What doctor says of recorded machines: nothing of them as they were, and of each planted fault its name and a remedy. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, test, vi } from 'vitest';
import type { HostReadings } from '../../control/readings.ts';
import { gpuChecks } from '../../launcher/doctor/checks/gpu.ts';
import { gpuHealthChecks } from '../../launcher/doctor/checks/gpu-health.ts';
import { networkChecks } from '../../launcher/doctor/checks/network.ts';
import { layoutChecks } from '../../launcher/doctor/checks/layout.ts';
import { pathChecks } from '../../launcher/doctor/checks/paths.ts';
import { roceChecks } from '../../launcher/doctor/checks/roce.ts';
import type { Finding } from '../../launcher/doctor/finding.ts';
import { growthFindings } from '../../launcher/doctor/growth.ts';
import { runChecks } from '../../launcher/doctor/run-checks.ts';
import { collectReadings } from '../../worker/readings/collect.ts';
import { type Planted, writeRecordedHost, writeTree } from '../rig/recorded-host.ts';

let root = '';
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'ncclrun-recorded-'));
  vi.stubEnv('PATH', `${join(root, 'bin')}:${process.env['PATH'] ?? ''}`);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(root, { recursive: true });
});

const checks = [...networkChecks, ...roceChecks, ...layoutChecks, ...pathChecks, ...gpuChecks, ...gpuHealthChecks];

const read = (): Promise<HostReadings> => collectReadings({ version: '1', watchMs: 1, root });

async function findings(): Promise<Finding[]> {
  return runChecks(checks, [{ name: 'h', readings: await read() }]).filter(({ answer }) => answer !== 'ok');
}

const gpu0 = 'sys/devices/pci0000:00/0000:00:06.0';
const kmsg = 'dev/kmsg';
const quietLog = { [kmsg]: '6,1,100,-;Linux version 6.18' };

describe('two H200 of a virtual machine', () => {
  it('doctor finds nothing wrong with them, and reads what nvidia-smi told', async () => {
    writeRecordedHost(root, 'h200-vm', { files: quietLog });
    expect(await findings()).toEqual([]);
    const { gpus, system } = await read();
    expect(system.virtual).toBe(true);
    expect(gpus).toMatchObject({ driver: '580.159.04', onBus: 2, openDriver: true });
    expect(gpus.devices?.[1]).toEqual({
      index: 1,
      busId: '00000000:00:07.0',
      name: 'NVIDIA H200',
      vbios: '96.00.A5.00.1A',
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
      temperature: expect.any(Number),
      temperatureMargin: expect.any(Number),
      powerLimitWatts: 700,
      defaultPowerLimitWatts: 700,
      smClockMhz: expect.any(Number),
      maximumSmClockMhz: 1980,
      throttled: [],
      throttledMicroseconds: 0,
      pcieReplays: 1,
      freeBytes: expect.any(Number),
      totalBytes: 143_771 * 2 ** 20,
      processes: [],
      activeNvlinks: 18,
      nvlinkSpeeds: [26.562],
      nvlinkErrors: 0,
    });
  });

  const rows: readonly (readonly [what: string, planted: Planted, check: string, answer: string, message: RegExp])[] = [
    [
      'a PCIe link with fewer lanes',
      { files: { ...quietLog, [`${gpu0}/current_link_width`]: '8', [`${gpu0}/max_link_width`]: '16' } },
      'pci.width',
      'fail',
      /has 8 lanes of 16/u,
    ],
    [
      'a missing NVLink',
      { files: quietLog, said: [['Link 3: 26.562 GB/s', 'Link 3: <inactive>']] },
      'nvlink.count',
      'fail',
      /17 of its NVLinks are up, 18 of others/u,
    ],
    [
      'an NVLink that trained down',
      { files: quietLog, said: [['Link 3: 26.562 GB/s', 'Link 3: 13.281 GB/s']] },
      'nvlink.speed',
      'fail',
      /runs at 13\.281 GB\/s/u,
    ],
    [
      'uncorrected errors of memory',
      { files: quietLog, said: [['<dram_uncorrectable>0', '<dram_uncorrectable>3']] },
      'gpu.ecc',
      'fail',
      /had 3 errors/u,
    ],
    [
      'a row that waits for its replacement',
      { files: quietLog, said: [['<remapped_row_pending>No', '<remapped_row_pending>Yes']] },
      'gpu.remapped-rows',
      'fail',
      /waits to be replaced/u,
    ],
    [
      'a row that could not be replaced',
      { files: quietLog, said: [['<remapped_row_failure>No', '<remapped_row_failure>Yes']] },
      'gpu.remapped-rows',
      'fail',
      /could not be replaced/u,
    ],
    [
      'thermal throttling',
      { files: quietLog, said: [['hw_thermal_slowdown>Not Active', 'hw_thermal_slowdown>Active']] },
      'gpu.throttled',
      'fail',
      /throttled: hw_thermal_slowdown/u,
    ],
    [
      'a GPU that has fallen off the bus',
      {
        files: {
          ...quietLog,
          [kmsg]:
            "3,9,1000000,-;NVRM: Xid (PCI:0000:00:07): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
        },
        said: [[/<gpu id="00000000:00:07\.0">.*?<\/gpu>/su, '']],
      },
      'gpu.count',
      'fail',
      /1 GPUs of 2 on the PCI bus/u,
    ],
    [
      'an Xid in the log',
      {
        files: { [kmsg]: '3,9,1000000,-;NVRM: Xid (PCI:0000:00:07): 48, pid=12, name=python, DBE (double bit error)' },
      },
      'gpu.xid',
      'fail',
      /^Xid 48: DBE \(double bit error\)/u,
    ],
    [
      'a driver that does not answer',
      { files: quietLog, status: 15 },
      'gpu.count',
      'fail',
      /cannot be asked.*status 15/u,
    ],
    [
      'a GPU outside of the fabric',
      { files: quietLog, said: [['<state>Completed', '<state>In Progress']] },
      'nvlink.fabric',
      'fail',
      /not joined the fabric/u,
    ],
    [
      'a GPU of which the driver wants a reset',
      { files: quietLog, said: [['<gpu_recovery_action>None', '<gpu_recovery_action>Reset']] },
      'gpu.recovery',
      'fail',
      /asks for: Reset/u,
    ],
    [
      'programs of others',
      {
        files: quietLog,
        said: [
          [
            '<processes>',
            '<processes><process_info><pid>7</pid><process_name>train</process_name><used_memory>1024 MiB</used_memory></process_info>',
          ],
        ],
      },
      'gpu.memory',
      'warn',
      /train \(process 7, 1 GiB\)/u,
    ],
  ];
  test.each(rows)('doctor names %s with a remedy', async (_what, planted, check, answer, message) => {
    writeRecordedHost(root, 'h200-vm', planted);
    const found = await findings();
    expect(found).toContainEqual(
      expect.objectContaining({ check, answer, message: expect.stringMatching(message), remedy: expect.any(String) }),
    );
    const others = found.filter((finding) => finding.check !== check && finding.check !== 'gpu.xid');
    expect(others).toEqual([]);
  });
});

const port = 'sys/class/infiniband/mlx5_0/ports/1';
const bridge = 'sys/devices/pci0000:15/0000:15:01.0';

/** PCI Express' capability at 0x40, access control's at 0x100. */
function config(deviceControl: number, accessControl: number): Buffer {
  const bytes = Buffer.alloc(4096);
  bytes[0x34] = 0x40;
  bytes[0x40] = 0x10;
  bytes.writeUInt16LE(deviceControl, 0x48);
  bytes.writeUInt32LE(0x0d | (1 << 16), 0x100);
  bytes.writeUInt16LE(accessControl, 0x106);
  return bytes;
}

/** A GPU and a card of InfiniBand below one bridge, as Linux shows them. */
const switched: Readonly<Record<string, string | Buffer>> = {
  'proc/cpuinfo': 'flags\t\t: fpu sse',
  'sys/kernel/iommu_groups/0/type': 'identity',
  'sys/module/nvidia/version': '570.1',
  'sys/module/nvidia_peermem/refcnt': '0',
  'dev/nvidia-uvm': '',
  'dev/infiniband/uverbs0': '',
  [kmsg]: '6,1,100,-;Linux version 6.1',
  [`${bridge}/class`]: '0x060400',
  [`${bridge}/config`]: config(0, 0),
  [`${bridge}/current_link_width`]: '16',
  [`${bridge}/current_link_speed`]: '32.0 GT/s PCIe',
  [`${bridge}/0000:17:00.0/class`]: '0x030200',
  [`${bridge}/0000:17:00.0/vendor`]: '0x10de',
  [`${bridge}/0000:17:00.0/config`]: config(5 << 12, 0),
  [`${bridge}/0000:18:00.0/class`]: '0x020700',
  [`${bridge}/0000:18:00.0/vendor`]: '0x15b3',
  [`${bridge}/0000:18:00.0/config`]: config(5 << 12, 0),
  ...Object.fromEntries(
    ['0000:17:00.0', '0000:18:00.0'].flatMap((device) => [
      [`${bridge}/${device}/current_link_width`, '16'],
      [`${bridge}/${device}/max_link_width`, '16'],
      [`${bridge}/${device}/current_link_speed`, '32.0 GT/s PCIe'],
      [`${bridge}/${device}/max_link_speed`, '32.0 GT/s PCIe'],
      [`${bridge}/${device}/aer_dev_correctable`, 'TOTAL_ERR_COR 0'],
      [`${bridge}/${device}/aer_dev_nonfatal`, 'TOTAL_ERR_NONFATAL 0'],
      [`${bridge}/${device}/aer_dev_fatal`, 'TOTAL_ERR_FATAL 0'],
    ]),
  ),
  'sys/class/infiniband/mlx5_0/fw_ver': '28.39.1002',
  [`${port}/state`]: '4: ACTIVE',
  [`${port}/phys_state`]: '5: LinkUp',
  [`${port}/rate`]: '400 Gb/sec (4X NDR)',
  [`${port}/link_layer`]: 'InfiniBand',
  [`${port}/lid`]: '0x1f',
  [`${port}/sm_lid`]: '0x1',
  [`${port}/counters/symbol_error`]: '0',
  [`${port}/counters/link_downed`]: '1',
};
const links = {
  'sys/bus/pci/devices/0000:15:01.0': bridge,
  'sys/bus/pci/devices/0000:17:00.0': `${bridge}/0000:17:00.0`,
  'sys/bus/pci/devices/0000:18:00.0': `${bridge}/0000:18:00.0`,
};
const oneGpu = [
  [/<gpu id="00000000:00:07\.0">.*?<\/gpu>/su, ''],
  ['00000000:00:06.0', '00000000:17:00.0'],
] as const;

/** Without what the virtual machine's own files say. */
function plant(files: Readonly<Record<string, string | Buffer>>): void {
  const target = mkdtempSync(join(root, 'gpus-'));
  writeRecordedHost(target, 'h200-vm', { said: oneGpu });
  vi.stubEnv('PATH', `${join(target, 'bin')}:${process.env['PATH'] ?? ''}`);
  writeTree(root, { ...switched, ...files }, links);
}

describe('a GPU and a card below one bridge', () => {
  it('doctor finds nothing wrong with them', async () => {
    plant({});
    expect(await findings()).toEqual([]);
    const { pci, pciBus } = await read();
    expect(pci).toMatchObject([
      { address: '0000:17:00.0', kind: 'gpu', readRequestBytes: 4096, bottleneck: null },
      { address: '0000:18:00.0', kind: 'nic', readRequestBytes: 4096 },
    ]);
    expect(pciBus).toEqual({ iommu: 'passthrough', redirecting: [] });
  });

  test.each([
    [
      'access control of a bridge',
      { [`${bridge}/config`]: config(0, 0x1d) },
      'pci.redirected',
      'warn',
      /\(ACS\) of 0000:15:01\.0/u,
    ],
    [
      'a log of bridges for root alone',
      { [`${bridge}/config`]: Buffer.alloc(64) },
      'pci.redirected',
      'note',
      /only root/u,
    ],
    ['a slow bridge', { [`${bridge}/current_link_width`]: '4' }, 'pci.bottleneck', 'warn', /has 4 lanes of 32 GT\/s/u],
    ['an IOMMU that translates', { 'sys/kernel/iommu_groups/0/type': 'DMA-FQ' }, 'pci.iommu', 'warn', /translates/u],
    [
      'small reads',
      { [`${bridge}/0000:18:00.0/config`]: config(2 << 12, 0) },
      'pci.read-request',
      'note',
      /reads 512 bytes/u,
    ],
    ['links that come and go', { [`${port}/counters/link_downed`]: '9' }, 'infiniband.downed', 'warn', /lost 9 times/u],
    ['symbol errors', { [`${port}/counters/symbol_error`]: '812' }, 'infiniband.errors', 'note', /symbol_error 812/u],
    [
      'uncorrected errors of PCIe',
      { [`${bridge}/0000:17:00.0/aer_dev_fatal`]: 'TOTAL_ERR_FATAL 2' },
      'pci.errors',
      'fail',
      /2 fatal/u,
    ],
    [
      'an error of an NVSwitch',
      { [kmsg]: '3,9,1,-;nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 41 LTSSM fault' },
      'gpu.xid',
      'fail',
      /SXid 20034: Fatal, Link 41/u,
    ],
  ] as const)('doctor names %s with a remedy', async (_what, files, check, answer, message) => {
    plant(files);
    const found = await findings();
    expect(found.length).toBeGreaterThan(0);
    for (const finding of found)
      expect(finding).toEqual(
        expect.objectContaining({ check, answer, message: expect.stringMatching(message), remedy: expect.any(String) }),
      );
  });

  /** The same card with Ethernet, and NVIDIA's tool for its flow control. */
  function plantRoce(files: Readonly<Record<string, string>>, trust: string): void {
    plant({
      [`${port}/link_layer`]: 'Ethernet',
      [`${port}/gid_attrs/types/3`]: 'RoCE v2',
      [`${port}/gid_attrs/ndevs/3`]: 'eth2',
      [`${port}/gids/3`]: '0000:0000:0000:0000:0000:ffff:0a00:0001',
      'sys/class/net/eth2/mtu': '9000',
      'sys/class/net/eth2/ecn/roce_np/enable/3': '1',
      'sys/class/net/eth2/ecn/roce_rp/enable/3': '1',
      'bin/mlnx_qos': `#!/bin/sh\nprintf 'Priority trust state: ${trust}\\n\\tenabled 0 0 0 1 0 0 0 0\\n'`,
      ...files,
    });
    chmodSync(join(root, 'bin/mlnx_qos'), 0o755);
  }

  test.each([
    ['trust in VLAN tags', {}, 'pcp', 'roce.flow-control', /takes priorities from VLAN tags/u],
    [
      'ECN that is half on',
      { 'sys/class/net/eth2/ecn/roce_rp/enable/3': '0' },
      'dscp',
      'roce.flow-control',
      /nobody slows down/u,
    ],
    ['small packets', { 'sys/class/net/eth2/mtu': '1500' }, 'dscp', 'roce.packet-size', /MTU of eth2 is 1500/u],
  ] as const)(
    'doctor names %s of a RoCE card, and nothing of one that is well',
    async (_what, files, trust, check, message) => {
      plantRoce({}, 'dscp');
      expect(await findings()).toEqual([]);
      rmSync(root, { recursive: true });
      mkdirSync(root);
      plantRoce(files, trust);
      expect(await findings()).toEqual([
        expect.objectContaining({ check, answer: 'warn', message: expect.stringMatching(message) }),
      ]);
    },
  );

  it('symbol errors that grow under load are a failure of their port', async () => {
    plant({});
    const before = [{ name: 'h', readings: await read() }];
    writeTree(root, { [`${port}/counters/symbol_error`]: '812' });
    const grown = growthFindings(before, [{ name: 'h', counters: await read() }]);
    expect(grown.filter(({ answer }) => answer !== 'ok')).toMatchObject([
      {
        check: 'infiniband.growing-errors',
        answer: 'fail',
        subject: 'mlx5_0 port 1',
        message: expect.stringContaining('symbol_error by 812'),
      },
    ]);
  });
});
