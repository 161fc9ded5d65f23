/** A host of two processors with a GPU each: one NIC lies beside the first GPU, another reaches no GPU's memory. */
import { element } from '../../control/topology/element.ts';
import type { Element } from '../../control/topology/element.ts';

const LINK = { link_speed: '16.0 GT/s PCIe', link_width: 16 };

export function loneNics(): Element {
  const gpu = (dev: number): Element => {
    const inside = element('gpu', { dev, sm: 86, rank: dev, gdr: 1 });
    return element('pci', { busid: `0000:2${dev}:00.0`, class: '0x030200', ...LINK }, [inside]);
  };
  const nic = (dev: number, speed: number, gdr: number): Element => {
    const net = element('net', { name: `nic${dev}`, dev, speed, port: 1, guid: `0x${dev + 1}`, gdr });
    return element('pci', { busid: `0000:4${dev}:00.0`, class: '0x020000', ...LINK }, [element('nic', {}, [net])]);
  };
  const bridge = element('pci', { busid: '0000:10:00.0', class: '0x060400', ...LINK }, [gpu(0), nic(0, 12_345, 1)]);
  const cpus = [[bridge], [gpu(1), nic(1, 100, 0)]].map((below, numaid) =>
    element('cpu', { numaid, arch: 'x86_64', vendor: 'AuthenticAMD', familyid: 143, modelid: 49 }, below),
  );
  return element('system', { version: 1 }, cpus);
}
