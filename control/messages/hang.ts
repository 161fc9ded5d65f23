/** Positions of ranks in their communicators' operations, which agents report about ranks without progress. */

import type { HostGpu } from './gpu.ts';

/** The NICs at both ends of a connection between two hosts. */
export interface NicPair {
  readonly own: string;
  readonly peer: string;
}

/** Position of one rank in one communicator, from its telemetry page. */
export interface RankPosition {
  /** Rank in the job. */
  readonly jobRank: number;
  readonly pid: number;
  /** The GPU that it computes on; null: none, or an instance without a number. */
  readonly gpu: HostGpu | null;
  /** Rank in the communicator. */
  readonly rank: number;
  /** Number of the operation that it began last, from 1; 0 if none. */
  readonly operation: number;
  /** True while that operation is running. */
  readonly inside: boolean;
  /** Name of that operation: `allReduce`. */
  readonly collective: string;
  readonly bytes: number;
  /** Milliseconds without progress inside the operation; 0 if none is running. */
  readonly waitedMs: number;
  /** True if its process is stopped (SIGSTOP, a debugger). */
  readonly stopped: boolean;
  /** The rank of the communicator that it waits for; null if it waits for none, or nobody knows. `nics`: null inside a host. */
  readonly waitsFor: { readonly rank: number; readonly nics: NicPair | null } | null;
}

/** Positions of one host's ranks in one communicator. */
export interface HostRankPositions {
  /** 16 hexadecimal digits. */
  readonly communicator: string;
  readonly epoch: number;
  /** Number of ranks of the communicator. */
  readonly size: number;
  readonly ranks: readonly RankPosition[];
}

/** Payload of FrameKind.rankPositions. */
export interface RankPositionsQuery {
  readonly communicator: string;
  readonly epoch: number;
}
