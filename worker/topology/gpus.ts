/** The GPUs that a program which starts here would see. */
import { listDirectory, readText } from './system-files.ts';

const driverDirectory = 'proc/driver/nvidia/gpus';

export interface VisibleGpu {
  /** What CUDA_VISIBLE_DEVICES calls it: a number among all of the host, or a UUID. */
  readonly name: string;
  /** Index among the host's GPUs; null for a MIG instance, or if unknown. */
  readonly index: number | null;
  /** PCI address as the driver writes it; null if unknown. */
  readonly address: string | null;
}

/** As CUDA numbers them, which is by PCI address among equal ones. `visible` is CUDA_VISIBLE_DEVICES, whose order counts. */
export function visibleGpus(visible = process.env['CUDA_VISIBLE_DEVICES'], root = '/'): VisibleGpu[] {
  const addresses = allGpus(root);
  if (visible === undefined) return addresses.map((address, index) => ({ name: String(index), index, address }));
  const found: VisibleGpu[] = [];
  for (const name of visible.split(',').map((word) => word.trim())) {
    const index = /^[0-9]+$/u.test(name) ? Number(name) : byUuid(name, addresses, root);
    const address = index === null ? null : addresses[index];
    if (address === undefined) return found; // CUDA too sees nothing from the first name on that is none
    found.push({ name, index, address });
  }
  return found;
}

/** PCI addresses of all GPUs of the host as the driver lists them; without its /proc directory, a null for each device file. */
export function allGpus(root = '/'): (string | null)[] {
  const listed = listDirectory(root, driverDirectory).toSorted();
  if (listed.length > 0) return listed;
  return listDirectory(root, 'dev')
    .filter((name) => /^nvidia[0-9]+$/u.test(name))
    .map(() => null);
}

/** Its number; `GPU-…` may be cut short. null: it is not known, as of a part of a GPU (`MIG-…`); -1: there is no such GPU. */
function byUuid(name: string, addresses: readonly (string | null)[], root: string): number | null {
  if (addresses.length === 0) return -1;
  if (name.startsWith('MIG-')) return null;
  if (!name.startsWith('GPU-')) return -1;
  if (addresses.includes(null)) return null;
  return addresses.findIndex((address) => gpuUuid(address, root)?.startsWith(name) === true);
}

/** Null: the driver does not list the GPU, or not its UUID. */
export function gpuUuid(address: string | null, root = '/'): string | null {
  const information = readText(root, `${driverDirectory}/${address ?? ''}/information`);
  return /^GPU UUID:\s*(\S+)/mu.exec(information)?.[1] ?? null;
}
