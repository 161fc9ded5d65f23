/** The GPUs that a program which starts here would see. */
import { listDirectory, readText } from './system-files.ts';

const driverDirectory = 'proc/driver/nvidia/gpus';

export interface VisibleGpu {
  /** What CUDA_VISIBLE_DEVICES calls it: a number among all of the host, or a UUID. */
  readonly name: string;
  /** PCI address as the driver writes it; null where the host does not say. */
  readonly address: string | null;
}

/** As CUDA numbers them, which is by PCI address among equal ones. `visible` is CUDA_VISIBLE_DEVICES, whose order counts. */
export function visibleGpus(visible = process.env['CUDA_VISIBLE_DEVICES'], root = '/'): VisibleGpu[] {
  const addresses = allGpus(root);
  if (visible === undefined) return addresses.map((address, index) => ({ name: String(index), address }));
  const found: VisibleGpu[] = [];
  for (const name of visible.split(',').map((word) => word.trim())) {
    const address = /^[0-9]+$/u.test(name) ? addresses[Number(name)] : byUuid(name, addresses, root);
    if (address === undefined) return found; // CUDA too sees nothing from the first name on that is none
    found.push({ name, address });
  }
  return found;
}

/** PCI addresses as the driver lists them; without its /proc directory, a null for each device file. */
function allGpus(root: string): (string | null)[] {
  const listed = listDirectory(root, driverDirectory).toSorted();
  if (listed.length > 0) return listed;
  return listDirectory(root, 'dev')
    .filter((name) => /^nvidia[0-9]+$/u.test(name))
    .map(() => null);
}

/** `GPU-…` may be cut short; of a part of a GPU (`MIG-…`) the address is not known. undefined: no such GPU. */
function byUuid(name: string, addresses: readonly (string | null)[], root: string): string | null | undefined {
  if (addresses.length === 0) return undefined;
  if (name.startsWith('MIG-')) return null;
  if (!name.startsWith('GPU-')) return undefined;
  if (addresses.includes(null)) return null;
  return addresses.find((address) => {
    const uuid = /^GPU UUID:\s*(\S+)/mu.exec(readText(root, `${driverDirectory}/${address ?? ''}/information`))?.[1];
    return uuid?.startsWith(name);
  });
}
