/**
 * CommPlan: everything the engines need for one communicator. Made once by control/planner (or read from --plan FILE), encoded per
 * host by encode.ts, executed by native/. The engine decides nothing: it evaluates the formulas below and takes the first listed
 * variant whose preconditions hold.
 */
import type { CollectiveName } from '../collectives.ts';
import type { GpuNic } from './gpu-nics.ts';
import type { PlanNetwork, PlanNic } from './network.ts';

export type { CollectiveName };
/** `collnet`, `collnetChain`: the network reduces, in the direct form and by chains. `copyEngine`: GPUs' copy engines store into the other ranks' buffers; what is reduced is read where it lies there, before. */
export type AlgorithmName =
  | 'directOneShot'
  | 'directTwoShot'
  | 'ring'
  | 'tree'
  | 'collnet'
  | 'copyEngine'
  | 'rail'
  | 'collnetChain';
export type ProtocolName = 'simple' | 'll' | 'll128';
export type DeviceName = 'host' | 'cuda';
export type TransportName = 'shm' | 'socket' | 'p2p' | 'ib' | 'plugin';

/** Which algorithm uses an edge. */
export type EdgeKind = 'ring' | 'tree' | 'rail' | 'pair' | 'collnet';

/** What must be provable from facts that all ranks share before a variant may be taken. `hostSlots`: the network is one that cannot reach a GPU's memory. */
export type Precondition =
  | 'registeredBuffers'
  | 'notCaptured'
  | 'publishedAddresses'
  | 'wholeLines'
  | 'hostSlots'
  | 'networkReduction';

/** Algorithm, protocol, channels and threads by which the engine carries out a collective. */
export interface Variant {
  readonly algorithm: AlgorithmName;
  readonly protocol: ProtocolName;
  /** Channels used: the first `channels` of the plan. */
  readonly channels: number;
  /** Bytes of one chunk (need not divide anything). */
  readonly chunkBytes: number;
  /** Threads of a block; also the granularity of chunks (row 19). At least 64 for Simple. */
  readonly threads: number;
  readonly requires: readonly Precondition[];
  /**
   * On GPUs: the engine carries the collective out as sends and receives with blocks of their own, where the call allows it (an
   * all-to-all that is not in place, a broadcast of two ranks), and gives it no more channels than such a message gets.
   */
  readonly asMessages: boolean;
  /** The planner's estimate of an operation of no bytes, or 0: it has none. */
  readonly predictedMicroseconds: number;
  /** What each MiB of the size by which the row is chosen adds to it. */
  readonly predictedMicrosecondsPerMebibyte: number;
}

/** Rows of a collective are ordered by size; a row serves sizes up to and including `upToBytes` (null: all larger ones). */
export interface TuningRow {
  readonly collective: CollectiveName;
  readonly upToBytes: number | null;
  readonly variants: readonly Variant[];
}

export interface PlanHost {
  readonly name: string;
  /** Address at which other hosts reach this one. */
  readonly address: string;
  /** The NICs that connections to other hosts use; the same number on all hosts. */
  readonly nics: readonly PlanNic[];
  /** On GPUs of several hosts: which cards read and write the GPUs' memory, by rank and card. Empty elsewhere. */
  readonly gpuNics: readonly GpuNic[];
}

export interface PlanPeer {
  /** Index into `hosts`. */
  readonly host: number;
  /** TCP port of the engine's listener, 0 if it has none. */
  readonly listenPort: number;
  /** Index of the NICs of pair connections by which the rank receives (network.ts, pairNicOf); null without a network. */
  readonly pairNic: number | null;
}

/** Channels with the same ring and tree share the arrays. */
export interface Channel {
  /** The ranks in ring order; a permutation of 0..n-1 in which the ranks of each host are neighbours. */
  readonly ring: readonly number[];
  /** By rank: the one above it, at the top itself. The ranks of each host come together before they leave it. */
  readonly tree: readonly number[];
  /** Index of the NICs by which the ring leaves a host and comes to the next; 0 without a network. */
  readonly rail: number;
}

/** Before the NICs of the hosts are known. `rail` null: the channels take the rails in turn; one that does not exist counts from 0 again. */
export type UnboundChannel = Omit<Channel, 'rail'> & { readonly rail: number | null };

/** As a person writes it: without a tree it gets the planner's, for where the ranks are then. */
export interface GivenChannel {
  readonly ring: readonly number[];
  readonly tree: readonly number[] | null;
  readonly rail: number | null;
}

/** Buffers of one direction of one connection: `steps` slots of `stepBytes`. */
export interface ConnectionBuffer {
  readonly steps: number;
  readonly stepBytes: number;
}

/** On GPUs. All steps are powers of two, all bytes multiples of 128 (native/plan/launch_format.h explains them). */
export interface GpuBuffers {
  /** The first channels, on which pairs have the plan's pairBuffer; on the others its slots have `narrowStepBytes`. */
  readonly wideChannels: number;
  readonly narrowStepBytes: number;
  /** Slots of protocols LL and LL128, of a pair on a channel; bytes with flags. */
  readonly lineSteps: number;
  readonly llStepBytes: number;
  readonly ll128StepBytes: number;
  /** The first channels, on which ranks of different hosts have connections; those of a rail have them on all. */
  readonly pairChannels: number;
}

/** How long a call on GPUs waits for the other ranks' consent to copy engines, in microseconds. */
interface CopyTimeouts {
  /** The least, however often agreements have failed. */
  readonly minMicroseconds: number;
  /** The most; below it half of the time that the operations take. */
  readonly maxMicroseconds: number;
  /** In a capture, which happens once. */
  readonly capturedMicroseconds: number;
}

/** Hides the wait behind operations of a few milliseconds, and is short beside those of a busy peer. */
export const COPY_TIMEOUTS: CopyTimeouts = {
  minMicroseconds: 30,
  maxMicroseconds: 1000,
  capturedMicroseconds: 20_000,
};

export interface CommPlan {
  readonly formatVersion: 1;
  /** Where all ranks' buffers live. */
  readonly device: DeviceName;
  /** One per rank, in rank order. */
  readonly peers: readonly PlanPeer[];
  readonly hosts: readonly PlanHost[];
  readonly channels: readonly Channel[];
  /** Transport of an edge by where its ends are. */
  readonly transports: { readonly sameHost: TransportName; readonly otherHost: TransportName };
  /** null: no connection uses a network. Of a written plan: the planner decides. */
  readonly network: PlanNetwork | null;
  readonly ringBuffer: ConnectionBuffer;
  /** The connection of any two ranks, for send, recv and direct variants; made at first use. */
  readonly pairBuffer: ConnectionBuffer;
  /** null on the host device. */
  readonly gpuBuffers: GpuBuffers | null;
  readonly tuning: readonly TuningRow[];
  /** Of the channels of a launch with sends and receives, those for what a rank sends itself; the messages share the others. On GPUs. */
  readonly copyChannels: number;
  /** Blocks of one launch, each of which holds an SM: the first so many channels. */
  readonly smsPerLaunch: number;
  readonly copyTimeouts: CopyTimeouts;
  /** How long a waiting rank polls, offering its core, before it sleeps, in nanoseconds. */
  readonly spinNanoseconds: number;
  /** 32 hex digits, random per communicator: what a data connection must show to be let in. */
  readonly token: string;
  /** What reduces in place of the network for variants that require `networkReduction`; null: the network's own groups, if it has any. */
  readonly aggregators: PlanAggregators | null;
}

/** The aggregators of a job (native/aggregator). */
export interface PlanAggregators {
  /** 32 hex digits, random per job: what a member must show to be let in. */
  readonly token: string;
  /** At least one. */
  readonly servers: readonly { readonly address: string; readonly port: number }[];
}

/** What `--plan FILE` holds. */
export type WrittenPlan = Omit<CommPlan, 'channels' | 'aggregators'> & { readonly channels: readonly GivenChannel[] };
