/** Limits of one host's topology, so that work per pair of devices stays bounded for any file. */
import { elementsOf, everyElement, locationOf, TopologyError } from './element.ts';
import type { Element } from './element.ts';

/** NCCL allows as many of each kind (NCCL_TOPO_MAX_NODES): eight racks of 72 GPUs. */
const MAX_DEVICES = 576;

/** Of all that is called so in a topology. A GPU or NIC has a <pci> of its own, and there are the switches between. */
const MAXIMA: Readonly<Record<string, { readonly count: number; readonly what: string }>> = {
  gpu: { count: MAX_DEVICES, what: 'GPUs' },
  net: { count: MAX_DEVICES, what: 'network devices' },
  cpu: { count: MAX_DEVICES, what: 'processors' },
  pci: { count: 4096, what: 'PCI devices' },
  pcilink: { count: 4096, what: 'links between PCI switches' },
};

/** A GPU has 18 NVLinks today; each element stands for one at least. */
const MAX_NVLINKS = 128;

const REASON = 'a topology describes one host: leave out what belongs to others';

/** @throws TopologyError that names the exceeded limit */
export function checkLimits(system: Element): void {
  const counts = new Map<string, number>();
  for (const one of everyElement(system)) {
    const count = (counts.get(one.name) ?? 0) + 1;
    counts.set(one.name, count);
    if (one.name === 'gpu') checkLinks(one);
  }
  for (const [name, { count: max, what }] of Object.entries(MAXIMA)) {
    const count = counts.get(name) ?? 0;
    if (count > max)
      throw new TopologyError(`${locationOf(system)}: has ${count} ${what}, and the maximum is ${max}; ${REASON}`);
  }
}

function checkLinks(gpu: Element): void {
  const count = elementsOf(gpu, 'nvlink').length + elementsOf(gpu, 'c2c').length;
  if (count <= MAX_NVLINKS) return;
  throw new TopologyError(`${locationOf(gpu)}: has ${count} NVLinks, and the maximum is ${MAX_NVLINKS}`);
}
