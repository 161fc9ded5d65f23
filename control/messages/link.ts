/** JSON payloads between launcher and agent. The receiver validates them with valibot (link/validate.ts). */
import type { TableUse } from '../planner/measured/tables.ts';
import type { AggregateAnswer } from './aggregator.ts';
import type { BusyGpu, FreeGpuMemory, HostGpu, Xid } from './gpu.ts';
import type { RankSpawn } from './guardian.ts';
import type { HostRankPositions, LeftBehind } from './hang.ts';
import type { HostNic, HostVerbs } from './nic.ts';
import type { HostHardware } from './hardware.ts';
import type { PortRange } from '../port-range.ts';
import type { ReachAnswer } from './reach.ts';
import type { HostTopology } from './topology.ts';

/** A program as ranks of a host run it. */
export interface OrderedProgram {
  /** Program first. */
  readonly argv: readonly string[];
  /** Absolute. */
  readonly workingDirectory: string;
  /** False if it is the launcher's own; a host that lacks it runs the ranks in the home directory. */
  readonly workingDirectoryGiven: boolean;
  /** Variables of -x. */
  readonly environment: Readonly<Record<string, string>>;
}

/** A rank in the order to its agent. */
export interface OrderedRank extends Pick<RankSpawn, 'rank' | 'stdinPipe' | 'interactive' | 'mergeStderr' | 'cpus'> {
  /** Indexes the placement's programs. */
  readonly program: number;
  /** Visible GPUs in the numbering of the agent's topology; null for all that the host shows. */
  readonly visibleGpus: readonly number[] | null;
  /** GPU to which the mapping assigns it, in the same numbering; null if its local rank decides. */
  readonly gpu: number | null;
}

/** The launcher's first message. It travels with the exec, so the agent has it before it sends anything. */
export interface AgentOrder {
  readonly schemaVersion: 1;
  /** Version of ncclrun; an agent of another version answers with a failure and exits. */
  readonly version: string;
  readonly jobId: string;
  /** Number of attempts before this one. */
  readonly epoch: number;
  /** Maximum of `epoch`; below it an agent whose ranks have exited waits for another order. */
  readonly maxRestarts: number;
  /** The agent waits for another job's order once its ranks have exited, and holds nothing meanwhile. */
  readonly stays: boolean;
  readonly hostName: string;
  /** Null if the launcher learns a host's slots only from its hello; AgentStart has the placement then. */
  readonly placement: Placement | null;
  /** 128 bytes, base64: the unique id of the communicator of all ranks (NCCLRUN_UNIQUE_ID). */
  readonly uniqueId: string;
  /** Lease of the launcher: after a longer silence the agent ends its ranks. */
  readonly leaseMs: number;
  readonly heartbeatMs: number;
  readonly outputCredit: number;
  /** True if this host's agent plans communicators of its own ranks alone; false with --plan FILE. */
  readonly plansLocally: boolean;
  /** Directory of ncclrun on the launcher's host; the agent takes programs from there out of its own installation. */
  readonly installation: string;
  /** NCCL_SOCKET_IFNAME from -x: interfaces by which other hosts may reach this one; null for the value in this host's environment. */
  readonly interfaces: string | null;
  /** NCCL_SOCKET_FAMILY from -x, likewise. */
  readonly addressFamily: string | null;
  /** True if the hello must include the host's InfiniBand and RoCE ports, which opens all its devices. */
  readonly verbs: boolean;
  /** True if the hello must include the host's topology. */
  readonly topology: boolean;
  /** Milliseconds without progress in an operation after which the agent reports a rank; 0 for never. */
  readonly hangAfterMs: number;
  /** True if ranks load our libnccl.so.2 ahead of any other (--engine ncclrun). */
  readonly preload: boolean;
  /** Ports on which the agent and its ranks listen for other hosts; null: the system chooses. */
  readonly portRange: PortRange | null;
  readonly busyGpus: BusyGpusPolicy;
  /** The job that has started the launcher as a rank; its GPUs are not busy for this one. */
  readonly outerJob: string | null;
}

/** What the agent does about GPUs of its ranks that another job holds: end the job before ranks start, notify the user, or nothing. */
export type BusyGpusPolicy = 'refuse' | 'report' | 'ignore';

/** A host's part of the rank map. */
export interface Placement {
  readonly hostIndex: number;
  readonly hostCount: number;
  /** Number of ranks of the job. */
  readonly rankCount: number;
  readonly programs: readonly OrderedProgram[];
  /** Value of PMI_process_mapping, by which MPI programs know which ranks share a host; empty where it is too long, left out with --pmi none. */
  readonly pmi?: string;
  /** Ranks of this host; the index is the local rank. */
  readonly ranks: readonly OrderedRank[];
}

/** Payload of FrameKind.start: what the launcher knows only after every host's hello. */
export interface AgentStart {
  /** Null if the order had it. */
  readonly placement: Placement | null;
  /** MASTER_ADDR, MASTER_PORT; variables of -x override them. */
  readonly environment: Readonly<Record<string, string>>;
  /** Left out where the host's ranks are all of its machine. */
  readonly localRanks?: LocalRanks;
}

/** Of a machine that runs several agents of the job: ranks that precede this agent's, and all. */
export interface LocalRanks {
  readonly before: number;
  readonly all: number;
}

/** An agent's description of itself and its host. */
export interface AgentHello {
  readonly schemaVersion: 1;
  readonly version: string;
  readonly jobId: string;
  readonly hostName: string;
  readonly bootId: string;
  /** Hosts with the same one read the same CLOCK_MONOTONIC; null: not known. */
  readonly clockId: string | null;
  readonly pid: number;
  readonly cores: number;
  readonly gpus: number;
  /** Null if the order does not ask for it. */
  readonly topology: HostTopology | null;
  readonly nodeVersion: string;
  /** Addresses at which other hosts may reach this one, best first (SSH_CONNECTION's server address leads). */
  readonly addresses: readonly string[];
  /** The network interfaces that these are of, in the system's order; empty if the job has one host. */
  readonly nics: readonly HostNic[];
  /** Its InfiniBand and RoCE cards; null if the job has one host. */
  readonly verbs: HostVerbs | null;
  /** The launcher's address as this host sees it, or null. */
  readonly launcherAddress: string | null;
  /** Properties that should be equal on all hosts of a job, by name; empty if the job has one host. */
  readonly preflight: Readonly<Record<string, string>>;
  /** Null in all if the job has one host, whose agent knows them itself. */
  readonly hardware: HostHardware;
  /** The host's clock: milliseconds since 1970. */
  readonly time: number;
  /** A TCP port that was free a moment ago, for MASTER_PORT. */
  readonly freePort: number;
}

/** Payload of FrameKind.failure: reports of an agent other than the exits of ranks. */
export type AgentReport =
  /** The agent cannot serve; it exits. */
  | { readonly type: 'refusal'; readonly message: string; readonly remedy: string | null }
  /** The process that keeps a host's lease received nothing from its agent for so long. */
  | { readonly type: 'silent'; readonly silentMs: number }
  /** The launcher's lease expired, so the agent ends its ranks. */
  | { readonly type: 'launcher-silent'; readonly silentMs: number }
  /** The agent's guardian died, and the ranks with it. */
  | { readonly type: 'guardian-died'; readonly message: string }
  /** The kernel killed this rank for want of memory; its exit follows. */
  | { readonly type: 'out-of-memory'; readonly rank: number }
  /** The GPU of a rank that failed; its exit follows. */
  | { readonly type: 'rank-gpu'; readonly rank: number; readonly gpu: HostGpu }
  | ({ readonly type: 'xid' } & Xid)
  /** Free memory of the ranks' GPUs before the first rank starts. A host with GPUs reports it once. */
  | { readonly type: 'gpu-memory'; readonly gpus: readonly FreeGpuMemory[] }
  /** Other jobs hold GPUs that its ranks were to have; the agent exits. */
  | { readonly type: 'gpus-busy'; readonly gpus: readonly BusyGpu[] }
  | { readonly type: 'notice'; readonly message: string }
  /** Of ranks that are about to start; other hosts may report the same. */
  | { readonly type: 'start-notice'; readonly message: string }
  /** The resource manager that started the agent wants the job to end. */
  | { readonly type: 'asked-to-end'; readonly signal: 'SIGTERM' | 'SIGINT' }
  /** Ranks hang in an operation: the launcher asks all agents where their ranks are. */
  | { readonly type: 'stalled' }
  /** A rank has called MPI_Abort; `time` in milliseconds since 1970. */
  | { readonly type: 'mpi-abort'; readonly rank: number; readonly exitCode: number; readonly time: number }
  /** The calls of a communicator's ranks differ: where this host's ranks of it are. `sentence`: what the ranks are told. */
  | { readonly type: 'calls-differ'; readonly sentence: string; readonly where: HostRankPositions }
  /** A rank waits for one that has left: where this host's ranks of the communicator are. */
  | { readonly type: 'left-behind'; readonly left: LeftBehind; readonly where: HostRankPositions }
  /** Where a host's ranks were, in the communicators of one that failed; its exit follows. */
  | { readonly type: 'last-position'; readonly rank: number; readonly where: HostRankPositions }
  /** The answer to FrameKind.rankPositions. */
  | { readonly type: 'rankPositions'; readonly where: HostRankPositions }
  /** The answer to FrameKind.reach. */
  | ReachAnswer
  /** The answer to FrameKind.aggregate. */
  | AggregateAnswer
  /** Table of measured times for communicators that this host plans, or its absence. */
  | ({ readonly type: 'tuning' } & TableUse);
