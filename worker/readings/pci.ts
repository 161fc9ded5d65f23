/** GPUs and network cards on the PCI bus: how wide and fast their links are, and what has gone wrong on them. */
import type { HostReadings } from '../../control/readings.ts';
import { listDirectory, readText } from '../topology/system-files.ts';
import { numberIn, numberOf } from './whole-numbers.ts';

type PciReading = HostReadings['pci'][number];

const NVIDIA = '0x10de';

export function readPci(root: string): PciReading[] {
  return listDirectory(root, 'sys/bus/pci/devices')
    .toSorted()
    .flatMap((address) => {
      const path = `sys/bus/pci/devices/${address}`;
      const kind = kindOf(readText(root, `${path}/class`), readText(root, `${path}/vendor`));
      return kind === null ? [] : [deviceOf(root, path, address, kind)];
    });
}

/** Classes: 0x0302 is a 3D controller, 0x0300 a VGA controller, 0x0200 Ethernet, 0x0207 InfiniBand. */
function kindOf(deviceClass: string, vendor: string): PciReading['kind'] | null {
  if (/^0x030[02]/u.test(deviceClass)) return vendor === NVIDIA ? 'gpu' : null;
  return /^0x020[07]/u.test(deviceClass) ? 'nic' : null;
}

function deviceOf(root: string, path: string, address: string, kind: PciReading['kind']): PciReading {
  // A virtual machine's bus says 0 or 63.
  const width = (file: string): number | null => {
    const lanes = numberIn(root, `${path}/${file}`);
    return lanes === null || lanes === 0 || lanes > 32 ? null : lanes;
  };
  // "TOTAL_ERR_COR 12"
  const errors = (file: string): number | null =>
    numberOf(/^TOTAL_ERR_\w+ (\d+)$/mu.exec(readText(root, `${path}/${file}`))?.[1]);
  return {
    address,
    kind,
    width: width('current_link_width'),
    maximumWidth: width('max_link_width'),
    // "32.0 GT/s PCIe"
    speed: numberIn(root, `${path}/current_link_speed`),
    maximumSpeed: numberIn(root, `${path}/max_link_speed`),
    correctableErrors: errors('aer_dev_correctable'),
    nonfatalErrors: errors('aer_dev_nonfatal'),
    fatalErrors: errors('aer_dev_fatal'),
  };
}
