/** GPUs and network cards on the PCI bus: how wide and fast their links are, and what has gone wrong on them. */
import { realpathSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { HostReadings } from '../../control/readings.ts';
import { listDirectory, readText } from '../topology/system-files.ts';
import { configOf, payloadIn, readRequestIn, redirectsIn } from './pci-config.ts';
import { numberIn, numberOf } from './whole-numbers.ts';

type PciReading = HostReadings['pci'][number];

const NVIDIA = '0x10de';

export function readPci(root: string): PciReading[] {
  return listDirectory(root, 'sys/bus/pci/devices')
    .toSorted()
    .flatMap((address) => {
      const path = `sys/bus/pci/devices/${address}`;
      const kind = kindOf(readText(root, `${path}/class`), readText(root, `${path}/vendor`));
      return kind === null ? [] : [deviceOf(root, path, address, kind)];
    });
}

/** Classes: 0x0302 is a 3D controller, 0x0300 a VGA controller, 0x0200 Ethernet, 0x0207 InfiniBand. */
function kindOf(deviceClass: string, vendor: string): PciReading['kind'] | null {
  if (/^0x030[02]/u.test(deviceClass)) return vendor === NVIDIA ? 'gpu' : null;
  return /^0x020[07]/u.test(deviceClass) ? 'nic' : null;
}

/** Of the bridges above GPUs and network cards. */
export function readPciBus(root: string): HostReadings['pciBus'] {
  const bridges = new Set(readPci(root).flatMap(({ address }) => bridgesAbove(root, address)));
  const redirects = [...bridges].toSorted().map((bridge) => {
    const config = configOf(root, `sys/bus/pci/devices/${bridge}`);
    return { bridge, found: config === null ? null : redirectsIn(config) };
  });
  const types = listDirectory(root, 'sys/kernel/iommu_groups').map((group) =>
    readText(root, `sys/kernel/iommu_groups/${group}/type`),
  );
  return {
    iommu: types.length === 0 ? null : types.some((type) => type.startsWith('DMA')) ? 'translated' : 'passthrough',
    redirecting: redirects.some(({ found }) => found === null)
      ? null
      : redirects.flatMap(({ bridge, found }) => (found === true ? [bridge] : [])),
  };
}

/** From the processor's port down: the directory of a device lies in that of the bridge above it. */
function bridgesAbove(root: string, address: string): string[] {
  try {
    const top = realpathSync(root);
    const path = relative(top, realpathSync(join(root, 'sys/bus/pci/devices', address)));
    return path
      .split('/')
      .slice(0, -1)
      .filter((name) => /^[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$/u.test(name));
  } catch {
    return [];
  }
}

/** Bandwidth of a link: lanes by GT/s. */
function bottleneckAbove(root: string, address: string, own: number | null): PciReading['bottleneck'] {
  if (own === null) return null;
  const links = bridgesAbove(root, address).flatMap((bridge) => {
    const path = `sys/bus/pci/devices/${bridge}`;
    const [width, speed] = [numberIn(root, `${path}/current_link_width`), numberIn(root, `${path}/current_link_speed`)];
    return width === null || speed === null || width === 0 || width > 32 ? [] : [{ address: bridge, width, speed }];
  });
  const [narrowest] = links.toSorted((one, other) => one.width * one.speed - other.width * other.speed);
  return narrowest !== undefined && narrowest.width * narrowest.speed < own ? narrowest : null;
}

function deviceOf(root: string, path: string, address: string, kind: PciReading['kind']): PciReading {
  // A virtual machine's bus says 0 or 63.
  const width = (file: string): number | null => {
    const lanes = numberIn(root, `${path}/${file}`);
    return lanes === null || lanes === 0 || lanes > 32 ? null : lanes;
  };
  // "TOTAL_ERR_COR 12"
  const errors = (file: string): number | null =>
    numberOf(/^TOTAL_ERR_\w+ (\d+)$/mu.exec(readText(root, `${path}/${file}`))?.[1]);
  const lanes = width('current_link_width');
  // "32.0 GT/s PCIe"
  const speed = numberIn(root, `${path}/current_link_speed`);
  const config = configOf(root, path);
  return {
    address,
    kind,
    width: lanes,
    maximumWidth: width('max_link_width'),
    speed,
    maximumSpeed: numberIn(root, `${path}/max_link_speed`),
    bottleneck: bottleneckAbove(root, address, lanes === null || speed === null ? null : lanes * speed),
    readRequestBytes: config === null ? null : readRequestIn(config),
    payloadBytes: config === null ? null : payloadIn(config),
    bridges: bridgesAbove(root, address),
    correctableErrors: errors('aer_dev_correctable'),
    nonfatalErrors: errors('aer_dev_nonfatal'),
    fatalErrors: errors('aer_dev_fatal'),
  };
}
