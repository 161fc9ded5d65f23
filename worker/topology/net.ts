/** Where nets stand: below their PCI device, or, if they have none (virtual ones, USB), below the first processor. */
import { basename } from 'node:path';
import { element, elementsOf } from '../../control/topology/element.ts';
import type { Element } from '../../control/topology/element.ts';
import type { NetFacts } from './facts.ts';
import { realPath } from './walk.ts';

/** PCI address of the device behind a net; null: it is no PCI device. */
export function pciAddressOf(root: string, { path }: NetFacts): string | null {
  if (path === null) return null;
  const subsystem = realPath(root, `${path}/subsystem`);
  return subsystem !== null && basename(subsystem) === 'pci' ? basename(path) : null;
}

/** Several nets of one device share a `nic`. */
export function addNet(parent: Element, net: NetFacts, device: number): void {
  let [nic] = elementsOf(parent, 'nic');
  if (nic === undefined) parent.children.push((nic = element('nic')));
  nic.children.push(
    element('net', {
      name: net.name,
      dev: device,
      ...(net.latency === null ? {} : { latency: net.latency }),
      speed: net.speed,
      port: net.port,
      guid: net.guid,
      maxconn: net.maxConnections,
      gdr: net.gpuDirect ? 1 : 0,
    }),
  );
}
