/** A GPU's element: its numbers, NVLinks and NVLink-C2C. */
import { element } from '../../control/topology/element.ts';
import type { Element } from '../../control/topology/element.ts';
import type { GpuFacts } from './facts.ts';
import { classOf } from './pci.ts';
import { devicePath, sysfsAddress } from './walk.ts';

/** What is at the other end of a link and cannot be seen from here, as in a virtual machine, is an NVSwitch. */
const NVSWITCH = '0x068000';

export function gpuElement(root: string, gpu: GpuFacts, rank: number | undefined): Element {
  const { index, computeCapability, gpuDirect, c2c } = gpu;
  const numbers = { dev: index, sm: computeCapability, ...(rank === undefined ? {} : { rank }) };
  const made = element('gpu', { ...numbers, gdr: gpuDirect ? 1 : 0 });
  for (const [target, count] of targets(gpu)) {
    const tclass = classOf(root, devicePath(root, target)) ?? NVSWITCH;
    made.children.push(element('nvlink', { target, count, tclass }));
  }
  if (c2c !== null && c2c.count > 0) made.children.push(element('c2c', { bw: c2c.bandwidth, count: c2c.count }));
  return made;
}

/** How many links lead to each, in the order of the first. */
function targets({ links }: GpuFacts): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { active, remote } of links) {
    if (!active || remote === null) continue;
    const target = sysfsAddress(remote);
    counts.set(target, (counts.get(target) ?? 0) + 1);
  }
  return counts;
}
