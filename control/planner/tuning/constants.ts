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

/** What an operation does to data decides how fast it is; `fan`: to or from one rank. */
export type Deed = 'allReduce' | 'reduceScatter' | 'exchange' | 'fan';
export type InsideAlgorithm = 'direct' | 'ring' | 'tree';

/** Between two ranks. */
export interface Hand {
  /** Before the first byte. */
  readonly microseconds: number;
  /** Of a GPU's NVLinks, what is used in the long run. */
  readonly share: number;
  /** What it takes until all channels are busy, reached with so many bytes. */
  readonly fillMicroseconds: number;
  readonly fillBytes: number;
}

/**
 * Inside a host over NVLink: fitted to 360 measured times of two H200, 8 bytes to 1 GiB, operations of a graph, such that the worst is off least, by 4
 * to 24 % (test/unit/fixtures/forms-two-h200.tsv; scripts/fit-hands.ts fits them to other times). Microseconds, share, and the fill in microseconds and KiB.
 */
export const HANDS: Readonly<Record<Deed, Readonly<Record<InsideAlgorithm, ByProtocol<Hand> | null>>>> = {
  allReduce: {
    direct: hands([4.61, 0.421, 5.5, 1024], [5.84, 0.843, 3, 64], [11.13, 0.862, 5, 256]),
    ring: hands([8.53, 0.267, 2.5, 16], [8.15, 0.595, 9, 16], [15.98, 0.902, 3, 64]),
    tree: hands([7.19, 0.263, 3, 16], [8.09, 0.559, 5, 16], [17.7, 0.892, 20, 4096]),
  },
  reduceScatter: {
    direct: hands([4.53, 0.319, 1, 16], [5.35, 0.804, 3, 16], [10.53, 0.851, 4.5, 64]),
    ring: hands([7.77, 0.208, 1, 16], [9, 0.431, 4.5, 16], [10.8, 0.853, 6, 64]),
    tree: null,
  },
  exchange: {
    direct: hands([4.02, 0.357, 0.6, 16], [4.48, 0.813, 1, 64], [8.78, 0.844, 5, 64]),
    ring: hands([6.86, 0.26, 1, 16], [6.96, 0.668, 3.5, 16], [9.73, 0.854, 5.5, 64]),
    tree: null,
  },
  fan: {
    direct: hands([3.1, 0.468, 0.5, 8192], [3.46, 0.92, 0.5, 2048], [6.74, 0.981, 1.5, 64]),
    ring: hands([4.96, 0.475, 1.5, 16], [4.62, 0.763, 2.5, 16], [6.96, 0.919, 2.5, 64]),
    tree: hands([4.69, 0.465, 1.5, 16], [4.4, 0.776, 2.5, 16], [6.68, 0.919, 2.5, 64]),
  },
};

/**
 * Multiprocessors that reach those shares; fewer have less in proportion. Simple: as measured with 8 and 16 of them (docs/performance.md); the
 * others, whose threads look at every line, are estimates.
 */
export const FILLING_BLOCKS: ByProtocol<number> = { ll: 40, ll128: 40, simple: 24 };

/** Microseconds of each further hand-over on the way round a ring or down a tree, and of each further peer at once: estimates. */
export const FURTHER: ByProtocol<number> = { ll: 1.1, ll128: 1.2, simple: 4.3 };
export const FURTHER_PEER = 0.2;
/** Microseconds of a barrier of two ranks, in a graph. */
export const BARRIER = 2.4;

type Numbers = readonly [microseconds: number, share: number, fillMicroseconds: number, fillKibibytes: number];
function hands(ll: Numbers, ll128: Numbers, simple: Numbers): ByProtocol<Hand> {
  const hand = ([microseconds, share, fillMicroseconds, fillKibibytes]: Numbers): Hand => ({
    microseconds,
    share,
    fillMicroseconds,
    fillBytes: fillKibibytes * 1024,
  });
  return { ll: hand(ll), ll128: hand(ll128), simple: hand(simple) };
}

/** Copy engines, of what the NVLinks carry; and what a copy waits for before it starts. */
export const COPY_ENGINES = { latency: 14, share: 1.055 } as const;

/** GB/s that GPUs send to each other where nobody knows how: between what PCI Express and NVLinks carry. */
export const UNKNOWN_LINKS = 100;
