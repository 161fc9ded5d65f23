/** Servers of PCI Express whose GPUs are joined in pairs by NVLink bridges. */
import { element } from '../../control/topology/element.ts';
import type { Element } from '../../control/topology/element.ts';

export interface Bridged {
  /** Model of the Intel processors, decimal: what goes from socket to socket. */
  readonly modelid: number;
  readonly sm: number;
  readonly sockets: number;
  readonly gpusPerSocket: number;
  /** NVLinks of each bridge. */
  readonly count: number;
  /** Pairs of GPUs, each with a bridge. */
  readonly bridges: readonly (readonly [number, number])[];
}

function address(dev: number): string {
  return `0000:${(0x10 + dev).toString(16)}:00.0`;
}

export function bridgedGpus({ modelid, sm, sockets, gpusPerSocket, count, bridges }: Bridged): Element {
  const bridgesOf = (dev: number): Element[] =>
    bridges.flatMap(([one, other]) => {
      if (dev !== one && dev !== other) return [];
      return [element('nvlink', { target: address(dev === one ? other : one), count, tclass: '0x030200' })];
    });
  const cpus = Array.from({ length: sockets }, (_, numaid) => {
    const gpus = Array.from({ length: gpusPerSocket }, (__, place) => {
      const dev = numaid * gpusPerSocket + place;
      const gpu = element('gpu', { dev, sm, rank: dev, gdr: 1 }, bridgesOf(dev));
      const link = { link_speed: '16.0 GT/s PCIe', link_width: 16 };
      return element('pci', { busid: address(dev), class: '0x030200', ...link }, [gpu]);
    });
    return element('cpu', { numaid, arch: 'x86_64', vendor: 'GenuineIntel', familyid: 6, modelid }, gpus);
  });
  return element('system', { version: 1 }, cpus);
}
