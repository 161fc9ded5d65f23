/**
 * What links carry, in MB/s and direction, as NCCL's model has it (NCCL 2.30, src/graph/topo.h and topo.cc, and docs/topology.md): less than
 * the wire's rate, what collectives are known to get out of it.
 */

/** Inside a device: no limit. */
export const LOCAL_BANDWIDTH = 5_000_000;

/** Of one NVLink, by the compute capability of the GPU. */
export function nvlinkBandwidth(computeCapability: number): number {
  if (computeCapability >= 100) return 40_100;
  if (computeCapability >= 90) return 20_600;
  if (computeCapability === 86) return 12_000;
  if (computeCapability >= 70 || computeCapability < 60) return 20_000;
  return 18_000;
}

/** Of a lane of PCI Express, by the speed as sysfs writes it: 8 GT/s give 0.75 GB/s. Unknown speeds count as those. */
export function laneBandwidth(speed: string): number {
  const transfers = Number.parseFloat(speed);
  return LANE_BANDWIDTHS.get(transfers) ?? 750;
}
const LANE_BANDWIDTHS = new Map([
  [2.5, 187.5],
  [5, 375],
  [8, 750],
  [16, 1500],
  [32, 3000],
  [64, 6000],
]);
/** Lanes assumed for `link_width="0"`, an unknown width in sysfs. */
export const UNKNOWN_WIDTH = 16;

/** Network speed assumed where the file has none, or -1, in Mbit/s. */
export const UNKNOWN_NET_MEGABITS = 10_000;

/** Traffic between GPUs that an Intel root complex forwards takes a fifth more of the PCI links: it is cut into packets of 64 bytes. */
export const INTEL_ROOT_COMPLEX_FACTOR = 6 / 5;

export type Architecture = 'x86_64' | 'arm64' | 'ppc64' | 'unknown';
export type Vendor = 'intel' | 'amd' | 'zhaoxin' | 'unknown';

/** Bandwidth assumed between NUMA nodes that the file does not describe: the slowest known one. */
export const UNKNOWN_SOCKET_BANDWIDTH = 6000;

/** Between two NUMA nodes. `family` and `model`: of the processor, decimal. */
export function socketBandwidth(architecture: Architecture, vendor: Vendor, family: number, model: number): number {
  if (architecture === 'ppc64') return 32_000;
  if (architecture === 'arm64') return 6000;
  if (architecture !== 'x86_64') return LOCAL_BANDWIDTH;
  if (vendor === 'intel') return intelBandwidth(family, model);
  if (vendor === 'amd') return 16_000;
  if (vendor === 'zhaoxin') return family === 7 && model === 0x5b ? 9000 : 6000;
  return LOCAL_BANDWIDTH;
}

/** Emerald Rapids and what is newer (Granite Rapids and Sierra Forest have lower numbers), Sapphire Rapids, Skylake, older ones. */
function intelBandwidth(family: number, model: number): number {
  if (family !== 6) return 6000;
  if (model >= 0xcf || (model >= 0xad && model <= 0xaf)) return 40_000;
  if (model >= 0x8f) return 22_000;
  return model >= 0x55 ? 10_000 : 6000;
}
