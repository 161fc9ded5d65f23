/**
 * Times and bandwidths of the tuning model, by the generation of the GPUs. Between hosts and over PCI Express they are those of NCCL's model (NCCL 2.27
 * to 2.30, src/graph/tuning.cc); inside a host over NVLink they were measured with ncclrun's own kernels on two H100 (docs/performance-gpus.md),
 * and for other generations are those, with the bandwidth of their links: estimates.
 */
import type { AlgorithmName, ProtocolName } from '../../plan/types.ts';

type ByProtocol<Value> = Readonly<Record<ProtocolName, Value>>;
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
 * What an operation does to data decides how fast it is. `exchange`: every rank's go to others, as they are; `spread`: one rank's do, or all go to one
 * rank; `reduce`: all go to one rank, which adds them up.
 */
export type TrafficPattern = 'allReduce' | 'reduceScatter' | 'reduce' | 'exchange' | 'spread';
/** Those of kernels. */
export type InsideAlgorithm = Exclude<AlgorithmName, 'collnet' | 'copyEngine'>;

/** Between two ranks. */
export interface IntraHostCost {
  /** Before the first byte. */
  readonly microseconds: number;
  /** Of a GPU's NVLinks, what is used in the long run. */
  readonly share: number;
  /** What it takes until all channels are busy, reached with so many bytes. */
  readonly fillMicroseconds: number;
  readonly fillBytes: number;
}

/**
 * Inside a host over NVLink: fitted to some 600 measured times of two H100, 8 bytes to 512 MiB, operations of a graph, such that the worst is off least, a
 * form the less the slower it is: by 3 to 34 %, in the mean by 1 to 15 % (test/unit/fixtures/forms-two-h100.tsv; scripts/fit-costs.ts fits them
 * to other times). Three differ by cost, all under LL128: what a one-shot all_reduce and a reduce_scatter take more where they are no launches of one
 * turn stands in their fill, so that two-shot is chosen where that still is one, and a reduce is slower there than a line can say. Of an all_reduce by
 * trees under Simple only small ones were measured: those are of two H200. Microseconds, share, and the fill in microseconds and KiB.
 */
export const INTRA_HOST_COSTS: Readonly<
  Record<TrafficPattern, Readonly<Partial<Record<InsideAlgorithm, ByProtocol<IntraHostCost>>>>>
> = {
  allReduce: {
    directOneShot: costs([2.82, 0.329, 0.3, 16], [3.3, 0.886, 3.2, 8192], [11.95, 0.912, 20, 16384]),
    directTwoShot: costs([3.79, 0.422, 0, 128], [4.18, 0.832, 0.2, 16], [16.49, 0.91, 19.9, 32768]),
    ring: costs([7.5, 0.45, 4.9, 16], [8.2, 0.58, 7.4, 16], [16.91, 0.92, 26.1, 32768]),
    tree: costs([7.08, 0.314, 3.5, 16], [8.76, 0.707, 17.3, 4096], [17.7, 0.892, 20, 4096]),
  },
  reduceScatter: {
    directOneShot: costs([3, 0.306, 0, 16], [3.29, 0.831, 3.5, 8192], [12.46, 0.911, 19.1, 16384]),
    ring: costs([7.45, 0.246, 2.3, 16], [8.99, 0.516, 6.1, 16], [13.35, 0.968, 47.9, 32768]),
  },
  reduce: {
    directOneShot: costs([2.19, 0.449, 0, 16], [2.36, 0.698, 0, 16], [8.63, 0.991, 0.9, 32]),
    ring: costs([5.66, 0.383, 1.8, 16], [5.95, 0.692, 5.3, 16], [9.58, 0.952, 0, 16]),
    tree: costs([4.96, 0.393, 1.6, 16], [5.48, 0.751, 3.8, 16], [8.71, 0.989, 0.7, 32]),
  },
  exchange: {
    directOneShot: costs([2.75, 0.354, 0.3, 16], [3.07, 0.799, 3.1, 4096], [10.88, 0.912, 9.1, 8192]),
    ring: costs([6.38, 0.277, 1.3, 16], [6.93, 0.713, 4.8, 64], [12.48, 0.915, 29.6, 32768]),
  },
  spread: {
    directOneShot: costs([2.17, 0.443, 0, 16], [2.43, 0.796, 0, 16], [8.94, 0.973, 0.4, 64]),
    ring: costs([4.59, 0.478, 1.9, 16], [4.78, 0.792, 2.3, 16], [9.64, 0.967, 20.2, 65536]),
    tree: costs([4.15, 0.482, 1.6, 16], [4.4, 0.842, 2.1, 16], [8.13, 0.945, 1.3, 32]),
  },
};

/**
 * Multiprocessors that reach those shares; fewer have less in proportion. Simple: as measured with 8 and 16 of them (docs/performance-gpus.md); the
 * others, whose threads look at every line, are estimates.
 */
export const FILLING_BLOCKS: ByProtocol<number> = { ll: 40, ll128: 40, simple: 24 };

/** Microseconds of each further cost-over around a ring or down a tree, and of each further peer at once: estimates. */
export const FURTHER: ByProtocol<number> = { ll: 1.1, ll128: 1.2, simple: 4.3 };
export const FURTHER_PEER = 0.2;
/** Microseconds of a barrier of two ranks, in a graph. */
export const BARRIER = 2.4;

type Numbers = readonly [microseconds: number, share: number, fillMicroseconds: number, fillKibibytes: number];
function costs(ll: Numbers, ll128: Numbers, simple: Numbers): ByProtocol<IntraHostCost> {
  const cost = ([microseconds, share, fillMicroseconds, fillKibibytes]: Numbers): IntraHostCost => ({
    microseconds,
    share,
    fillMicroseconds,
    fillBytes: fillKibibytes * 1024,
  });
  return { ll: cost(ll), ll128: cost(ll128), simple: cost(simple) };
}

/** Copy engines, of what the NVLinks carry; and what is waited for before a copy and behind it: less where it is the only one. */
export const COPY_ENGINES = { latency: 20, messageLatency: 15, share: 1.055 } as const;
/**
 * Kernels that read the others' operands where they lie: of two H100, as above; how many blocks read as much as more of them would, and how
 * many there are at most.
 */
export const PULLS = { latency: 33, share: 0.918, fillingBlocks: 10, blocks: 16 } as const;
/** They take a fourth of the SMs: for so much longer than the fastest they may take. */
export const PULLS_MAY_TAKE = 1.02;
/**
 * What copy engines alone do leaves the SMs to the program: of as many bytes as a program computes beside, it may take so much longer than
 * the fastest. Not of a gather or scatter, where NCCL's kernels would be faster.
 */
export const COPIES_MAY_TAKE = 1.17;
export const COPIES_MAY_FROM_BYTES = 24 * 2 ** 20;

/** GB/s that GPUs send to each other where nobody knows how: between what PCI Express and NVLinks carry. */
export const UNKNOWN_LINKS = 100;
