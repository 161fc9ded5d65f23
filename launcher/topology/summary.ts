/** A machine in one line. */
import type { Survey } from './survey.ts';
import type { DevicePart, TopologyPart } from './part.ts';
import { counted } from '../text/counted.ts';
import { networkSpeed } from '../../control/speed-text.ts';
import { different } from '../text/gpu-words.ts';

/** "2 NUMA nodes, 8 GPUs (sm 90), 8 NICs (400 Gb/s), NVSwitch" */
export function summary({ cpus, gpus, nets, machine }: Survey): string {
  const capabilities = different(
    gpus.map(({ node }) => (node.computeCapability === 0 ? 'unknown' : node.computeCapability)),
  );
  const speeds = different(nets.map(({ megabits }) => networkSpeed(megabits)));
  return [
    counted(cpus.length, (cpus[0]?.node.numa ?? 0) < 0 ? 'CPU' : 'NUMA node'),
    gpus.length === 0
      ? (undescribed(cpus, 'GPU') ?? 'no GPU')
      : `${counted(gpus.length, 'GPU')} (sm ${capabilities.join(', ')})`,
    nets.length === 0
      ? (undescribed(cpus, 'NIC') ?? 'no NIC')
      : `${counted(nets.length, 'NIC')} (${speeds.join(', ')})`,
    ...(machine.nvswitch === null ? [] : ['NVSwitch']),
  ].join(', ');
}

/** "8 GPUs not described": as in files that providers ship. */
function undescribed(cpus: Survey['cpus'], what: DevicePart['what']): string | null {
  const devices = cpus.flatMap(({ parts }) => devicesBelow(parts)).filter((device) => device.what === what);
  return devices.length === 0 ? null : `${counted(devices.length, what)} not described`;
}

function devicesBelow(parts: readonly TopologyPart[]): DevicePart[] {
  return parts.flatMap((part) => {
    if (part.kind === 'device') return [part];
    return part.kind === 'switch' ? devicesBelow(part.parts) : [];
  });
}
