/** Four GPUs whose NVLinks make one ring, which is not the one of their numbers: 0, 2, 1, 3. */
import { element } from '../../control/topology/element.ts';
import type { Element } from '../../control/topology/element.ts';

const RING = [0, 2, 1, 3] as const;

function address(dev: number): string {
  return `0000:${(0x10 + dev).toString(16)}:00.0`;
}

/** `network`: with a NIC, so that the ring can go on to other hosts. */
export function crossedGpus(network = false): Element {
  const cpu = element('cpu', { numaid: 0, arch: 'x86_64', vendor: 'GenuineIntel', familyid: 6, modelid: 85 });
  const link = { link_speed: '8.0 GT/s PCIe', link_width: 16 };
  for (let dev = 0; dev < RING.length; dev++) {
    const place = RING.findIndex((one) => one === dev);
    const neighbours = [1, 3].map((step) => RING[(place + step) % RING.length] ?? 0);
    const nvlinks = neighbours.map((target) =>
      element('nvlink', { target: address(target), count: 2, tclass: '0x030200' }),
    );
    const gpu = element('gpu', { dev, sm: 70, rank: dev, gdr: 1 }, nvlinks);
    cpu.children.push(element('pci', { busid: address(dev), class: '0x030200', ...link }, [gpu]));
  }
  if (network) {
    const net = element('net', { name: 'mlx5_0', dev: 0, speed: 100_000, port: 1, guid: '0x1', gdr: 1 });
    const nic = element('nic', {}, [net]);
    cpu.children.push(element('pci', { busid: '0000:20:00.0', class: '0x020700', ...link }, [nic]));
  }
  return element('system', { version: 1 }, [cpu]);
}
