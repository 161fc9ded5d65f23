/** A PCI device's link to what is above it. */
import * as attribute from '../../control/topology/attribute.ts';
import type { Element } from '../../control/topology/element.ts';
import { laneBandwidth, UNKNOWN_WIDTH } from '../../control/planner/machine/constants.ts';
import type { PciLink } from './part.ts';

/** GT/s of a lane. */
const GENERATIONS = new Map([
  [2.5, 1],
  [5, 2],
  [8, 3],
  [16, 4],
  [32, 5],
  [64, 6],
]);

/** Throws a TopologyError for a speed or a number of lanes that is none. */
export function pciLink(pci: Element): PciLink {
  const speed = attribute.linkSpeed(pci);
  const width = attribute.lanes(pci);
  return {
    generation: GENERATIONS.get(Number.parseFloat(speed)) ?? null,
    width: width === 0 || width > attribute.MAX_LANES ? null : width,
    bandwidth: laneBandwidth(speed) * (width === 0 ? UNKNOWN_WIDTH : width),
  };
}

/** "PCIe 5 x16"; "PCIe" alone where the file says no more. */
export function pciText({ generation, width }: PciLink): string {
  return `PCIe${generation === null ? '' : ` ${generation}`}${width === null ? '' : ` x${width}`}`;
}
