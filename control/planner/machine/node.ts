/** A machine as a graph: what is in it, and the links between, each in one direction. */
import type { Architecture, Vendor } from './constants.ts';

interface Common {
  /** Among all nodes of the machine. */
  readonly index: number;
  /** As people know it: "GPU 3", "0000:1b:00.0", "mlx5_0". */
  readonly name: string;
  /** Fastest first; of PCI, those down the tree before the one up. */
  readonly links: MachineLink[];
}

export interface GpuNode extends Common {
  readonly kind: 'gpu';
  /** As CUDA and NVML number it. */
  readonly device: number;
  /** Of the device, where a rank may use a part of it (MLOPart); null: it is whole. */
  readonly part: number | null;
  /** In the file it was read from. */
  readonly rank: number;
  readonly computeCapability: number;
  readonly gpuDirect: boolean;
}

export interface CpuNode extends Common {
  readonly kind: 'cpu';
  readonly numa: number;
  readonly architecture: Architecture;
  readonly vendor: Vendor;
  /** To other NUMA nodes of this machine, in MB/s. */
  readonly socketBandwidth: number;
}

interface PciNode extends Common {
  readonly kind: 'pci';
  /** Vendor, device, and those of the subsystem: 16 hexadecimal digits. */
  readonly model: string;
}

interface SwitchNode extends Common {
  /** All NVSwitches of the machine together. */
  readonly kind: 'nvswitch';
}

interface NicNode extends Common {
  readonly kind: 'nic';
}

export interface NetNode extends Common {
  readonly kind: 'net';
  readonly device: number;
  /** Ports of equal `port` share their bandwidth. */
  readonly port: string;
  /** MB/s. */
  readonly bandwidth: number;
  /** Microseconds. */
  readonly latency: number;
  readonly gpuDirect: boolean;
  /** The network can reduce what goes through it. */
  readonly collnet: boolean;
}

export type MachineNode = GpuNode | CpuNode | PciNode | SwitchNode | NicNode | NetNode;

export type LinkKind = 'local' | 'nvlink' | 'c2c' | 'pci' | 'socket' | 'net';

export interface MachineLink {
  /** Among all links of the machine. */
  readonly index: number;
  readonly kind: LinkKind;
  readonly from: MachineNode;
  readonly to: MachineNode;
  /** MB/s. */
  readonly bandwidth: number;
}

export interface Machine {
  readonly nodes: readonly MachineNode[];
  readonly gpus: readonly GpuNode[];
  readonly nets: readonly NetNode[];
  readonly cpus: readonly CpuNode[];
  readonly nvswitch: SwitchNode | null;
  readonly links: readonly MachineLink[];
}
