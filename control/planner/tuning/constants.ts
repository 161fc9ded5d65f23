/**
 * Times and bandwidths of the tuning model, by the generation of the GPUs. Between hosts and over PCI Express they are those of NCCL's model (NCCL 2.27
 * to 2.30, src/graph/tuning.cc); inside a host over NVLink they were measured with ncclrun's own kernels on two H200 (docs/performance.md),
 * and for other generations are those, with the bandwidth of their links: estimates.
 */
import type { ProtocolName } from '../../plan/types.ts';

export type ByProtocol<Value> = Readonly<Record<ProtocolName, Value>>;
export type NetworkAlgorithm = 'ring' | 'tree' | 'collnet';

/** Microseconds before the first byte. */
export const BASE_LATENCY: Readonly<Record<NetworkAlgorithm, ByProtocol<number>>> = {
  ring: { ll: 6.6, ll128: 14, simple: 8.4 },
  tree: { ll: 6.8, ll128: 14, simple: 8.4 },
  collnet: { ll: 0, ll128: 0, simple: 0 },
};

/** Microseconds of one step over a link of each kind. */
export const STEP_LATENCY: Readonly<
  Record<'nvlink' | 'pci' | 'net', Readonly<Record<NetworkAlgorithm, ByProtocol<number>>>>
> = {
  nvlink: {
    ring: { ll: 0.6, ll128: 1.9, simple: 3.4 },
    tree: { ll: 0.6, ll128: 1.25, simple: 4 },
    collnet: { ll: 0, ll128: 0, simple: 2.8 },
  },
  pci: {
    ring: { ll: 1, ll128: 2.5, simple: 5.7 },
    tree: { ll: 1, ll128: 1.9, simple: 4 },
    collnet: { ll: 0, ll128: 0, simple: 2.8 },
  },
  net: {
    ring: { ll: 2.7, ll128: 4, simple: 14 },
    tree: { ll: 5, ll128: 8.5, simple: 14 },
    collnet: { ll: 0, ll128: 0, simple: 30 },
  },
};

/** For one host, two, and more. */
type ByHosts = readonly [number, number, number];

export interface Generation {
  readonly name: 'Volta' | 'Ampere' | 'Hopper' | 'Blackwell';
  /** GB/s of all channels together under protocol LL, inside a host. */
  readonly llInside: number;
  /** GB/s of a channel. */
  readonly ring128: ByHosts;
  readonly tree128: ByHosts;
  readonly treeSimple: ByHosts;
}

const VOLTA: Generation = {
  name: 'Volta',
  llInside: 39,
  ring128: [20, 20, 20],
  tree128: [20, 20, 20],
  treeSimple: [26.5, 18.5, 10],
};
const AMPERE: Generation = {
  name: 'Ampere',
  llInside: 87.7,
  ring128: [20, 20, 20],
  tree128: [20, 20, 20],
  treeSimple: [24, 23.6, 17.8],
};
const HOPPER: Generation = {
  name: 'Hopper',
  llInside: 141,
  ring128: [36.7, 36.7, 36.7],
  tree128: [36.7, 36.7, 29],
  treeSimple: [38.7, 41.4, 36],
};
const BLACKWELL: Generation = {
  name: 'Blackwell',
  llInside: 282,
  ring128: [40, 40, 40],
  tree128: [55.6, 31.67, 20],
  treeSimple: [70, 42.8, 24],
};

export function generationOf(computeCapability: number): Generation {
  if (computeCapability >= 100) return BLACKWELL;
  if (computeCapability >= 90) return HOPPER;
  return computeCapability >= 80 ? AMPERE : VOLTA;
}

/** GB/s of all channels under LL between hosts, by the processors, which copy flags: two hosts, more. */
export const LL_BETWEEN_HOSTS = { amd: [22.5, 19], other: [39, 20.4] } as const;

/**
 * Inside a host over NVLink: microseconds of the first hand-over and of each further one, and the part of a GPU's NVLinks that is used. Measured as
 * said above; operations of a graph.
 */
export interface Hand {
  readonly first: number;
  readonly further: number;
  readonly share: number;
}
export const HANDS: ByProtocol<Hand> = {
  ll: { first: 3.6, further: 1.5, share: 0.27 },
  ll128: { first: 5.5, further: 3, share: 0.62 },
  simple: { first: 12, further: 10, share: 0.89 },
};

/** Copy engines, of what the NVLinks carry; and what a copy waits for before it starts. */
export const COPY_ENGINES = { latency: 14, share: 1.055 } as const;
