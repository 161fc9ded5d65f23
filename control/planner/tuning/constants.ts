/**
 * Times and bandwidths of the tuning model inside a host. They were measured with ncclrun's kernels over NVLink on two H100
 * (docs/performance-gpus.md); other generations use them with the bandwidth of their links, as estimates.
 */
import type { CollnetName } from '../../plan/possible.ts';
import type { AlgorithmName, ProtocolName } from '../../plan/types.ts';

type ByProtocol<Value> = Readonly<Record<ProtocolName, Value>>;
/**
 * The traffic pattern of an operation decides how fast it is. `exchange`: every rank sends data to the others; `spread`: one rank sends to all, or all
 * send to one; `reduce`: all send to one rank, which reduces.
 */
export type TrafficPattern = 'allReduce' | 'reduceScatter' | 'reduce' | 'exchange' | 'spread';
/** Algorithms inside a host that kernels run. */
export type InsideAlgorithm = Exclude<AlgorithmName, CollnetName | 'copyEngine'>;

/** Cost of an operation between two ranks. */
export interface IntraHostCost {
  /** Microseconds until the first byte arrives. */
  readonly microseconds: number;
  /** Fraction of the bandwidth of a GPU's NVLinks that large operations reach. */
  readonly share: number;
  /** Additional time until all channels are busy, and the number of bytes from which all of it applies. */
  readonly fillMicroseconds: number;
  readonly fillBytes: number;
}

/**
 * Costs inside a host over NVLink: microseconds, share, and the fill in microseconds and KiB. scripts/fit-costs.ts fitted them to some 600 measured times
 * of two H100, of operations in a graph with 8 bytes to 512 MiB (test/unit/fixtures/forms-two-h100.tsv). The fit minimizes the largest error, with less
 * weight for slower variants: the largest errors are 3 to 34 %, the mean errors 1 to 15 %.
 *
 * Three rows of LL128 are not plain fits. A one-shot all_reduce and a reduce_scatter take longer where they no longer are single-step launches; their fill
 * contains that time, so that the planner chooses two-shot where that still is a single-step launch. A reduce is slower there than the model can express.
 * The times of an all_reduce by trees under Simple are those of two H200, and of small sizes only.
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
 * Number of SMs that reach these shares; fewer reach proportionally less. The value of Simple follows from measurements with 8 and 16 SMs
 * (docs/performance-gpus.md); those of LL and LL128, whose threads poll every line, are estimates.
 */
export const FILLING_BLOCKS: ByProtocol<number> = { ll: 40, ll128: 40, simple: 24 };

/** Microseconds of each further hop around a ring or down a tree, and of each further peer of a direct algorithm: estimates. */
export const HOP_LATENCY: ByProtocol<number> = { ll: 1.1, ll128: 1.2, simple: 4.3 };
export const PEER_LATENCY = 0.2;
/** Microseconds of a barrier of two ranks in a graph. */
export const BARRIER_LATENCY = 2.4;

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

/**
 * Copy engines: `share` of the NVLinks' bandwidth, and `latency` of the waits before and after a copy in microseconds, which is less for a single message.
 */
export const COPY_ENGINES = { latency: 20, messageLatency: 15, share: 1.055 } as const;
/**
 * Kernels that pull operands from the other ranks' buffers, measured on two H100. `fillingBlocks`: number of blocks beyond which more blocks are not
 * faster; `blocks`: maximum number of blocks.
 */
export const PULLS = { latency: 33, share: 0.918, fillingBlocks: 10, blocks: 16 } as const;
/** Pulls use a fourth of the SMs, so the planner chooses them up to this factor slower than the fastest variant. */
export const PULL_TOLERANCE = 1.02;
/**
 * Copy engines leave the SMs to the program, so from a size at which programs overlap computation the planner chooses them up to this factor slower than
 * the fastest variant. It does not for gather and scatter, where NCCL's kernels would be faster.
 */
export const COPY_TOLERANCE = 1.17;
export const COPY_TOLERANCE_FROM_BYTES = 24 * 2 ** 20;

/** GB/s assumed between GPUs of unknown topology: between the bandwidths of PCI Express and NVLink. */
export const DEFAULT_LINK_BANDWIDTH = 100;
