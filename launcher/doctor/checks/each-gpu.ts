/** Checks of one GPU after the other. */
import type { GpuReading, HostReadings } from '../../../control/readings.ts';
import type { Complaint } from '../finding.ts';

const gpuName = ({ index, busId }: GpuReading): string => `GPU ${index} (${busId})`;

/** Null where there are no GPUs, or they cannot be asked. */
export function each(
  gpus: HostReadings['gpus'],
  of: (gpu: GpuReading, all: readonly GpuReading[]) => readonly Complaint[],
): Complaint[] | null {
  const { devices } = gpus;
  if (devices === null || devices.length === 0) return null;
  return devices.flatMap((gpu) => of(gpu, devices).map((complaint) => ({ ...complaint, subject: gpuName(gpu) })));
}
