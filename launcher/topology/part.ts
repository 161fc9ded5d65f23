/** A machine as its tree is drawn: what stands below each NUMA node, in the order of the topology file. All bandwidths: MB/s and direction. */
import type { Element } from '../../control/topology/element.ts';
import type { CpuNode, GpuNode, NetNode } from '../../control/planner/machine/node.ts';

export type TopologyPart = SwitchPart | GpuPart | NicPart | DevicePart;

export interface CpuPart {
  readonly kind: 'cpu';
  readonly element: Element;
  readonly node: CpuNode;
  /** "NUMA node 0", or "CPU" where the machine has no such nodes. */
  readonly name: string;
  /** "Intel x86_64, family 6, model 143" */
  readonly model: string;
  readonly parts: readonly TopologyPart[];
}

/** A PCI switch, or a bridge of one. */
export interface SwitchPart {
  readonly kind: 'switch';
  readonly busId: string;
  readonly link: PciLink;
  readonly parts: readonly TopologyPart[];
}

export interface GpuPart {
  readonly kind: 'gpu';
  /** CUDA's device number; the position in the file if the file lacks the number or repeats one. */
  readonly index: number;
  readonly busId: string;
  readonly link: PciLink;
  readonly element: Element;
  /** null: no rank of the one who wrote the file uses it. */
  readonly rank: number | null;
  readonly cpu: number;
  readonly node: GpuNode;
  readonly nvlinks: readonly Nvlinks[];
  /** To its processor; null: it has none. */
  readonly c2c: number | null;
}

/** All NVLinks of a GPU to one other end. */
export interface Nvlinks {
  readonly to: NvlinkEnd;
  /** As the file has it; without meaning where the other end does not show itself. */
  readonly busId: string;
  readonly count: number;
  readonly bandwidth: number;
}

export type NvlinkEnd =
  | { readonly type: 'gpu'; readonly index: number }
  | { readonly type: 'nvswitch' }
  | { readonly type: 'cpu' }
  /** A GPU that is not in the file. */
  | { readonly type: 'absent' };

export interface NicPart {
  readonly kind: 'nic';
  /** null: it is no PCI device. */
  readonly busId: string | null;
  readonly link: PciLink | null;
  readonly nets: readonly NetPart[];
}

/** What a rank can send through: a port of a NIC. */
export interface NetPart {
  readonly index: number;
  readonly name: string;
  /** Mbit/s; null if the file has none. */
  readonly megabits: number | null;
  readonly element: Element;
  readonly cpu: number;
  readonly busId: string | null;
  readonly link: PciLink | null;
  readonly node: NetNode;
}

/** A GPU or NIC of which only the location is known, from files that providers ship for NCCL to complete. */
export interface DevicePart {
  readonly kind: 'device';
  readonly what: 'GPU' | 'NIC' | 'device';
  readonly busId: string;
  readonly link: PciLink;
}

export interface PciLink {
  /** Generation of PCI Express; null if the file has none. */
  readonly generation: number | null;
  /** Number of lanes; null if the file has none, which counts as 16. */
  readonly width: number | null;
  readonly bandwidth: number;
}
