/** Positions of ranks in their communicators' operations, which agents report about ranks without progress. */

import type { HostGpu } from './gpu.ts';
import type { HostHealth } from './host-health.ts';

/** The NICs at both ends of a connection between two hosts. */
export interface NicPair {
  readonly own: string;
  readonly peer: string;
}

/** Arguments of a collective, as far as all ranks must agree on them. */
export interface CallArguments {
  readonly collective: string;
  /** Number of elements. */
  readonly count: number;
  readonly type: string | null;
  readonly operator: string | null;
  readonly root: number | null;
}

/** What a rank has called so far in one communicator; sends and receives do not count. */
export interface CallHistory {
  /** How many collectives have begun. */
  readonly count: number;
  /** Rolling hashes, 16 bits of them, up to and including the collectives number `count`, `count` - 1, …, as far as they are remembered. */
  readonly hashes: readonly number[];
  /** The last one, for people. */
  readonly last: string;
  /** The last one; null if none has begun. */
  readonly call: CallArguments | null;
  /** The last ones, from the flight recorder; empty where nobody asked for them. */
  readonly recent: readonly NumberedCall[];
}

/** A collective with its number among those of its communicator. */
export interface NumberedCall extends CallArguments {
  readonly number: number;
}

export const MAX_RECENT_CALLS = 12;

/** A communicator, as telemetry pages name it. */
export interface CommunicatorName {
  /** 16 hexadecimal digits. */
  readonly communicator: string;
  readonly epoch: number;
}

/** A rank has left a communicator in order, and another one waits for it there. */
export interface LeftBehind extends CommunicatorName {
  /** In the communicator. */
  readonly rank: number;
  /** In the job; -1 where another host has it. */
  readonly jobRank: number;
  readonly sentence: string;
}

/** Position of one rank in one communicator, from its telemetry page. */
export interface RankPosition {
  /** Rank in the job. */
  readonly jobRank: number;
  /** Rank in the communicator. */
  readonly rank: number;
  /** Number of the operation that it began last, from 1; 0 if none. */
  readonly operation: number;
  /** True while that operation is running. */
  readonly inside: boolean;
  /** A kernel waits, and the host knows of the operation only that it was queued, or captured in a graph that repeats it. */
  readonly byKernel: boolean;
  /** Name of that operation: `allReduce`. */
  readonly collective: string;
  readonly bytes: number;
  /** Milliseconds without progress inside the operation; 0 if none is running. */
  readonly waitedMs: number;
  /** True if that is at least --hang-after. */
  readonly hangs: boolean;
  /** When it made progress last: microseconds by its host's clock. Compared between two readings. */
  readonly progressUs: number;
  /** The rank of the communicator that it waits for; null if it waits for none, or nobody knows. `nics`: null inside a host. */
  readonly waitsFor: { readonly rank: number; readonly nics: NicPair | null } | null;
  /** Null if the page was being written. */
  readonly calls: CallHistory | null;
}

/** Positions of one host's ranks in one communicator. */
export interface CommunicatorPositions extends CommunicatorName {
  /** Number of ranks of the communicator. */
  readonly size: number;
  readonly ranks: readonly RankPosition[];
}

export const PROCESS_STATES = [
  'running',
  'sleeping',
  'uninterruptible',
  'stopped',
  'frozen',
  'zombie',
  'gone',
  'unknown',
] as const;
export type ProcessState = (typeof PROCESS_STATES)[number];

/** What a process sleeps in. */
export interface ProcessSleep {
  /** The system call, `read`, or where that is not known the wait channel. */
  readonly call: string;
  /** Null: the call has none. */
  readonly file: string | null;
  /** The kernel's function in which its thread waits (/proc/PID/wchan); null: not known. */
  readonly channel: string | null;
}

/** What the kernel says about the process of a rank. */
export interface RankProcess {
  /** Rank in the job. */
  readonly jobRank: number;
  readonly pid: number;
  /** The GPU that it computes on; null: none, or an instance without a number. */
  readonly gpu: HostGpu | null;
  readonly state: ProcessState;
  /** CPU time of all its threads. */
  readonly cpuMs: number;
  /** How often its cgroup's limit of CPU time has held it up; null if nobody knows. */
  readonly throttled: number | null;
  /** What it sleeps in. Null unless the query asks for it, or nobody knows. */
  readonly sleep: ProcessSleep | null;
}

/** When a rank began its last collectives of a communicator, as far as its flight recorder knows; of a burst of them the first. */
export interface RankArrivals extends CommunicatorName {
  readonly size: number;
  readonly jobRank: number;
  /** Rank in the communicator. */
  readonly rank: number;
  /** Their numbers, ascending. */
  readonly numbers: readonly number[];
  /** Microseconds by its host's CLOCK_MONOTONIC: when it began the first, and how much later each of the others than the one before. */
  readonly startUs: number;
  readonly afterUs: readonly number[];
  /** How long it was in no operation of any communicator between each of them and the one before. */
  readonly outsideUs: readonly number[];
}

/** Collectives of one rank in one answer. */
export const MAX_ARRIVALS = 64;
/** Ranks in communicators, each counted once for each, in one answer. */
export const MAX_ARRIVING_RANKS = 512;

/** One direction of a connection of a rank over the network, counted from its beginning. Both ends have one. */
export interface RankEdge extends CommunicatorName {
  readonly jobRank: number;
  /** In the communicator, like `peer`. */
  readonly rank: number;
  readonly peer: number;
  readonly channel: number;
  readonly sends: boolean;
  /** Of this end. */
  readonly nic: string;
  /** Messages given to the network, to send or as room to receive, and of these those that it has carried. */
  readonly handed: number;
  readonly carried: number;
  /** Of payload, in messages that were carried. */
  readonly bytes: number;
  /** Of a sender: how long the network had something to send, in microseconds. */
  readonly busyUs: number;
  /** Since the last message that was carried, in microseconds; null: none was. */
  readonly idleUs: number | null;
  /** What the other side has acknowledged, the time in which something waited for that, and packets that were sent again. Null: not known. */
  readonly wire: { readonly bytes: number; readonly busyUs: number; readonly retransmits: number } | null;
}

/** In one answer. */
export const MAX_EDGES = 400;

/** Positions of one host's ranks in all their communicators. */
export interface HostRankPositions {
  /** Of the query that this answers. */
  readonly reading: number;
  /** When it was read: milliseconds by the host's clock. */
  readonly atMs: number;
  /** The same by CLOCK_MONOTONIC, in microseconds. */
  readonly monotonicUs: number;
  readonly communicators: readonly CommunicatorPositions[];
  readonly processes: readonly RankProcess[];
  /** CPU time that other virtual machines have taken from this one, in milliseconds over all CPUs; null: nobody knows. */
  readonly stolenMs: number | null;
  /** Of its NICs and GPUs; null unless the query asks for arrivals. */
  readonly health: HostHealth | null;
  /** Empty unless the query asks for them. */
  readonly arrivals: readonly RankArrivals[];
  /** The same; those on which something waits come first, then those that have carried most. */
  readonly edges: readonly RankEdge[];
  /** Number of positions that the answer has no room for. */
  readonly omitted: number;
}

/** Number of ranks whose processes one query inspects. */
export const MAX_INSPECTED = 16;

/** Payload of FrameKind.rankPositions. */
export interface RankPositionsQuery {
  /** Number of the reading. */
  readonly reading: number;
  /** Ranks of the job of which the answer must say what their processes sleep in. */
  readonly inspect: readonly number[];
  /** The answer must say when ranks began their last collectives. */
  readonly arrivals: boolean;
  /** The answer must say what the ranks' connections over the network have carried. */
  readonly edges: boolean;
}
