/**
 * The path of a PCI device up to its processor in sysfs. A switch shows as two levels of bridges: the port that the device hangs on, and
 * above it the switch's own upstream port, which stands for the switch.
 */
import { realpathSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { readText } from './system-files.ts';

export interface PciDevice {
  /** Lower case. */
  readonly busId: string;
  /** Directory, from the root; null: sysfs does not have the device. */
  readonly path: string | null;
}

interface Walk {
  /** The device first, then the switches above it. */
  readonly devices: readonly PciDevice[];
  /** NUMA node of the device, -1 if it has none. */
  readonly numa: string;
}

/** `0000:1b:00.0`; domains may have more digits (Intel VMD, Hyper-V). */
const ADDRESS = /^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]$/iu;

export function looksLikeAddress(name: string): boolean {
  return ADDRESS.test(name);
}

/** In sysfs' form: lower case, four digits for a domain that needs no more (NVML writes eight). */
export function sysfsAddress(address: string): string {
  return address.toLowerCase().replace(/^0+(?=[0-9a-f]{4,}:)/u, '');
}

/** Where a device's directory really is, from the root; null: there is no such device. */
export function devicePath(root: string, busId: string): string | null {
  return realPath(root, `sys/bus/pci/devices/${busId}`);
}

export function realPath(root: string, path: string): string | null {
  try {
    const found = realpathSync.native(join(root, path));
    return root === '/' ? found.slice(1) : relative(realpathSync.native(root), found);
  } catch {
    return null;
  }
}

/** From a device's address to its processor. A device that sysfs does not have hangs on a processor without a number. */
export function walkUp(root: string, address: string): Walk {
  const busId = sysfsAddress(address);
  const path = devicePath(root, busId);
  if (path === null) return { devices: [{ busId, path }], numa: '-1' };
  const switches = switchesAbove(path).map((directory) => ({ busId: basename(directory), path: directory }));
  return { devices: [{ busId, path }, ...switches], numa: readText(root, `${path}/numa_node`) || '-1' };
}

/** Directories of the switches' upstream ports, from the device on. Exported for tests. */
export function switchesAbove(path: string): string[] {
  const found: string[] = [];
  let above = 0; // bridges since the device or the last switch
  for (let at = dirname(path); looksLikeAddress(basename(at)); at = dirname(at)) {
    above += 1;
    if (above % 2 === 0) found.push(at); // odd ones are downstream ports, or a root port alone
  }
  return found;
}
