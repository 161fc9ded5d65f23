/** A host as many clusters have it: two processors, eight GPUs on NVSwitches, each beside a NIC under a PCI switch of its own. */
import { element } from '../../control/topology/element.ts';
import type { Element } from '../../control/topology/element.ts';

const LINK = { link_speed: '32.0 GT/s PCIe', link_width: 16 };

export function eightGpus(): Element {
  const cpus = [0, 1].map((numaid) =>
    element('cpu', { numaid, arch: 'x86_64', vendor: 'GenuineIntel', familyid: 6, modelid: 143 }),
  );
  for (let dev = 0; dev < 8; dev++) {
    const bus = (0x10 + dev * 4).toString(16);
    const gpu = element('gpu', { dev, sm: 90, rank: dev, gdr: 1 }, [
      element('nvlink', { target: 'fffffff:ffff:ff', count: 18, tclass: '0x068000' }),
    ]);
    const net = element('net', { name: `mlx5_${dev}`, dev, speed: 400_000, port: 1, guid: `0x${dev + 1}`, gdr: 1 });
    const parts = [
      element('pci', { busid: `0000:${bus}:02.0`, class: '0x030200', ...LINK }, [gpu]),
      element('pci', { busid: `0000:${bus}:03.0`, class: '0x020700', ...LINK }, [element('nic', {}, [net])]),
    ];
    cpus[dev >> 2]?.children.push(element('pci', { busid: `0000:${bus}:01.0`, class: '0x060400', ...LINK }, parts));
  }
  return element('system', { version: 1 }, cpus);
}
