/** JSON payloads between launcher and agent. Validated with valibot where they arrive (link/validate.ts). */
import type { TableUse } from '../planner/measured/tables.ts';
import type { FreeGpuMemory, HostGpu, Xid } from './gpu.ts';
import type { RankSpawn } from './guardian.ts';
import type { HostRankPositions } from './hang.ts';
import type { ReachAnswer } from './reach.ts';
import type { HostTopology } from './topology.ts';

/** A program as ranks of a host run it. */
export interface OrderedProgram {
  /** Program first. */
  readonly argv: readonly string[];
  /** Absolute. */
  readonly workingDirectory: string;
  /** False: it is where the user stood; a host that lacks it runs the ranks in the home directory. */
  readonly workingDirectoryGiven: boolean;
  /** What -x passes on. */
  readonly environment: Readonly<Record<string, string>>;
}

/** A rank as its agent is told of it. */
export interface OrderedRank extends Pick<RankSpawn, 'rank' | 'stdinPipe' | 'interactive' | 'mergeStderr' | 'cpus'> {
  /** Indexes the placement's programs. */
  readonly program: number;
  /** The GPUs that it may see, as the agent's topology numbers them; null: what the host shows everybody. */
  readonly visibleGpus: readonly number[] | null;
  /** The one that it was dealt to, numbered likewise; null: its local rank says. */
  readonly gpu: number | null;
}

/** The first order. It travels with the exec: an agent has it before it has said anything. */
export interface AgentOrder {
  readonly schemaVersion: 1;
  /** Version of ncclrun; an agent of another version answers with a failure and ends. */
  readonly version: string;
  readonly jobId: string;
  /** Attempts before this one. */
  readonly epoch: number;
  /** With fewer attempts behind it an agent whose ranks have ended waits for another order. */
  readonly maxRestarts: number;
  readonly hostName: string;
  /** Null where the slots of some host are known only from its hello: AgentStart has it then. */
  readonly placement: Placement | null;
  /** 128 bytes, base64: the unique id of the communicator of all ranks (NCCLRUN_UNIQUE_ID). */
  readonly uniqueId: string;
  /** Silence of the launcher longer than this ends the ranks of this host. */
  readonly leaseMs: number;
  readonly heartbeatMs: number;
  readonly outputCredit: number;
  /** This host's agent plans communicators that lie wholly on it; false with --plan FILE. */
  readonly plansLocally: boolean;
  /** Where ncclrun lies at the launcher: a program from there is taken from the agent's own. */
  readonly installation: string;
  /** NCCL_SOCKET_IFNAME of the ranks, as -x passes it on: the interfaces by which other hosts may reach this one; null: as this host's environment says. */
  readonly interfaces: string | null;
  /** The hello is to have the host's topology. */
  readonly topology: boolean;
  /** Ranks that are inside an operation for so long without getting on are told of; 0: never. */
  readonly hangAfterMs: number;
  /** The ranks get our libnccl.so.2 ahead of any other (--engine ncclrun). */
  readonly preload: boolean;
}

/** A host's part of the rank map. */
export interface Placement {
  readonly hostIndex: number;
  readonly hostCount: number;
  /** Ranks in the whole job. */
  readonly rankCount: number;
  readonly programs: readonly OrderedProgram[];
  /** The ranks of this host by local rank: the first is local rank 0. */
  readonly ranks: readonly OrderedRank[];
}

/** Payload of FrameKind.start: what is known only once every host has said hello. */
export interface AgentStart {
  /** Null if the order had it. */
  readonly placement: Placement | null;
  /** MASTER_ADDR, MASTER_PORT; what -x passes on stands above them. */
  readonly environment: Readonly<Record<string, string>>;
}

/** What an agent says of itself and its host. */
export interface AgentHello {
  readonly schemaVersion: 1;
  readonly version: string;
  readonly jobId: string;
  readonly hostName: string;
  readonly bootId: string;
  readonly pid: number;
  readonly cores: number;
  readonly gpus: number;
  /** Null where the order does not ask for it. */
  readonly topology: HostTopology | null;
  readonly nodeVersion: string;
  /** Addresses other hosts may reach this one at, best first (SSH_CONNECTION's server address leads). */
  readonly addresses: readonly string[];
  /** The launcher's address as this host sees it, or null. */
  readonly launcherAddress: string | null;
  /** What hosts of one job should have in common, by what it is; empty where the job has no other host. */
  readonly preflight: Readonly<Record<string, string>>;
  /** Its clock: milliseconds since 1970. */
  readonly time: number;
  /** A TCP port that was free a moment ago, for MASTER_PORT. */
  readonly freePort: number;
}

/** Payload of FrameKind.failure: what an agent has to say beside the ranks' own ends. */
export type AgentReport =
  /** The agent cannot serve; it ends. */
  | { readonly type: 'refusal'; readonly message: string; readonly remedy: string | null }
  /** Of a host, by whoever keeps the lease with it: nothing was heard of its agent for longer than that. */
  | { readonly type: 'silent'; readonly silentMs: number }
  /** Nothing was heard of the launcher for longer than the lease, so its ranks are ended. */
  | { readonly type: 'launcher-silent'; readonly silentMs: number }
  /** Its guardian died with ranks left; they were ended. */
  | { readonly type: 'guardian-died'; readonly message: string }
  /** The kernel killed this rank for want of memory; its exit follows. */
  | { readonly type: 'out-of-memory'; readonly rank: number }
  /** The GPU of a rank that failed; its exit follows. */
  | { readonly type: 'rank-gpu'; readonly rank: number; readonly gpu: HostGpu }
  | ({ readonly type: 'xid' } & Xid)
  /** Of the ranks' GPUs, before the first of them started. A host that has GPUs says it once. */
  | { readonly type: 'gpu-memory'; readonly gpus: readonly FreeGpuMemory[] }
  | { readonly type: 'notice'; readonly message: string }
  /** The resource manager that has started it wants the job to end. */
  | { readonly type: 'asked-to-end'; readonly signal: 'SIGTERM' | 'SIGINT' }
  /** Ranks hang in an operation of a communicator, and where all of this host are in it. */
  | { readonly type: 'stalled'; readonly where: HostRankPositions }
  /** The answer to FrameKind.rankPositions. */
  | { readonly type: 'rankPositions'; readonly where: HostRankPositions }
  /** To FrameKind.reach. */
  | ReachAnswer
  /** Of the communicators of one kind that are planned here. */
  | ({ readonly type: 'tuning' } & TableUse);
