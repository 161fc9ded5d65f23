/** Reads a PCI device's attributes for NCCL's `pci` element from sysfs. */
import { readText } from './system-files.ts';
import type { PciDevice } from './walk.ts';

/** Attributes in NCCL's order, without those of missing files. `otherwise` is the class if sysfs has none. */
export function pciAttributes(root: string, { busId, path }: PciDevice, otherwise: string): [string, string][] {
  const attributes: [string, string][] = [['busid', busId]];
  if (path === null) return [...attributes, ['class', otherwise], ['link_speed', ''], ['link_width', '0']];
  const deviceClass = readText(root, `${path}/class`) || otherwise;
  if (deviceClass !== '') attributes.push(['class', deviceClass]);
  for (const name of ['vendor', 'device', 'subsystem_vendor', 'subsystem_device']) {
    const value = readText(root, `${path}/${name}`);
    if (value !== '') attributes.push([name, value]);
  }
  return [...attributes, ['link_speed', linkSpeed(root, path)], ['link_width', String(linkWidth(root, path))]];
}

/** Lower speed of the device and its port, as the kernel writes it; the device's if the port has none. */
function linkSpeed(root: string, path: string): string {
  const [device, port] = [path, `${path}/..`].map((at) => readText(root, `${at}/max_link_speed`));
  return transfers(port) < transfers(device) ? (port ?? '') : (device ?? '');
}

/** "32.0 GT/s PCIe" and, of older kernels, "8 GT/s". */
function transfers(speed = ''): number {
  const number = Number.parseFloat(speed);
  return Number.isNaN(number) ? Infinity : number;
}

/** Smaller width of both; 0 (which readers take for 16) if one is unknown. */
function linkWidth(root: string, path: string): number {
  const widths = [path, `${path}/..`].map((at) => Number.parseInt(readText(root, `${at}/max_link_width`), 10));
  return Math.min(...widths.map((width) => (Number.isNaN(width) ? 0 : width)));
}

/** Class of the device at an address, such as 0x068000, an NVSwitch; null: it is not to be seen here. */
export function classOf(root: string, path: string | null): string | null {
  return path === null ? null : readText(root, `${path}/class`) || null;
}
