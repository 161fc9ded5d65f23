/**
 * Every way a job can fail, told apart by `type`. One failure is one sentence for people (report/failure-text.ts), one entry
 * of the result's `failures`, and, where it decides the job, its `reason`.
 */
import type { BusyGpu, HostGpu } from '../../control/messages/gpu.ts';
import type { Hang } from './hang.ts';
import type { XidBefore } from './xid.ts';

export type Phase = 'allocate' | 'connect' | 'hello' | 'spawn' | 'run' | 'teardown';

/** A place in a hostfile, a -H list or a settings file. */
export interface SourcePosition {
  readonly source: string;
  readonly line: number;
  readonly column: number;
  /** The whole line, for the squiggle. */
  readonly text: string;
  /** Characters from `column` on that are at fault. */
  readonly length: number;
}

/** The command line, a variable or a settings file is wrong. Exit status 2. */
interface UsageFailure {
  readonly type: 'usage';
  readonly message: string;
  /** Where it stands in a settings file. */
  readonly position?: SourcePosition;
  readonly remedy: string | null;
}
/** A hostfile or host list cannot be read or says something impossible. Exit status 2. */
export interface HostfileFailure {
  readonly type: 'hostfile';
  readonly message: string;
  readonly position: SourcePosition | null;
  readonly remedy: string | null;
}
/** More ranks than slots, or a rank that fits nowhere. Exit status 2. */
interface AllocationFailure {
  readonly type: 'allocation';
  readonly message: string;
  readonly remedy: string | null;
}
/** Rounds of a measurement took too unlike times. Exit status 1. */
interface UnrepeatableFailure {
  readonly type: 'unrepeatable';
  readonly message: string;
  readonly remedy: string | null;
}
/** A host could not be reached or its agent could not be started. Exit status 125. */
export interface HostUnreachableFailure {
  readonly type: 'host-unreachable';
  readonly host: string;
  readonly phase: Phase;
  readonly cause:
    | 'unknown-host'
    | 'no-route'
    | 'refused'
    | 'host-key'
    | 'authentication'
    | 'timeout'
    | 'shell'
    | 'other';
  /** What the remote shell said, at most a few lines. */
  readonly detail: string;
  readonly remedy: string | null;
}
/** The agent is there but cannot serve: other version, another job's, damaged installation. Exit status 125. */
export interface AgentFailure {
  readonly type: 'agent';
  readonly host: string;
  readonly phase: Phase;
  readonly message: string;
  readonly remedy: string | null;
}
/** --busy-gpus refuse: other jobs hold GPUs of the job's ranks, and no rank was started there. Exit status 125. */
interface GpusBusyFailure {
  readonly type: 'gpus-busy';
  readonly host: string;
  readonly gpus: readonly BusyGpu[];
}
/** What a failing GPU may be behind. */
interface MayFollowXids {
  /** Errors that GPUs of the job reported before; left out where there were none. */
  readonly xids?: readonly XidBefore[];
}
/** A host that had said hello fell silent or its link broke. Exit status 125. */
export interface HostLostFailure extends MayFollowXids {
  readonly type: 'host-lost';
  readonly host: string;
  /** launcher-silent: of this launcher, so long that the host ended its ranks. protocol: it sent what no agent sends, or too much, and was cut off. */
  readonly cause: 'silent' | 'link-closed' | 'launcher-silent' | 'guardian-died' | 'protocol';
  readonly silentMs: number | null;
  readonly detail: string;
}
/** A program could not be started. Exit status 127 (not found), 126 (not executable), else 125. */
export interface SpawnFailure {
  readonly type: 'spawn';
  readonly host: string;
  readonly rank: number;
  readonly program: string;
  readonly cause: 'not-found' | 'not-executable' | 'working-directory' | 'system';
  readonly errno: string;
  readonly remedy: string | null;
}
interface OnGpu {
  /** The rank's own; left out where it has none. */
  readonly gpu?: HostGpu;
}
/** A rank ended with a status other than 0. Exit status: the rank's. */
export interface RankExitFailure extends MayFollowXids, OnGpu {
  readonly type: 'rank-exit';
  readonly host: string;
  readonly rank: number;
  readonly pid: number;
  readonly exitCode: number;
  /** The kernel killed it, or a child of it whose status it passes on, for want of memory. */
  readonly outOfMemory: boolean;
  /** The last lines of its stderr, at most ten. */
  readonly stderrTail: readonly string[];
}
/** A rank died of a signal that we did not send. Exit status 128 + signal. */
export interface RankSignalFailure extends MayFollowXids, OnGpu {
  readonly type: 'rank-signal';
  readonly host: string;
  readonly rank: number;
  readonly pid: number;
  readonly signal: NodeJS.Signals;
  readonly outOfMemory: boolean;
  readonly stderrTail: readonly string[];
}
/** A rank exited without joining a communicator that others wait for, or left one that others then failed for want of. Exit status: the rank's, or 125 if that was 0. */
export interface RankMissingFailure extends MayFollowXids {
  readonly type: 'rank-missing';
  readonly host: string;
  readonly rank: number;
  readonly message: string;
  readonly stderrTail: readonly string[];
}
/** A rank called MPI_Abort. Exit status: the one that it gave, 1 if that was 0. */
interface MpiAbortFailure {
  readonly type: 'mpi-abort';
  readonly host: string;
  readonly rank: number;
  readonly exitCode: number;
  readonly stderrTail: readonly string[];
}
/** --doctor found what makes jobs fail, and no rank was started. Exit status 125. */
interface PreflightFailure {
  readonly type: 'preflight';
  /** Bad ones; empty where no single host is to blame. */
  readonly hosts: readonly string[];
  readonly findings: readonly {
    /** As docs/doctor.md has it. */
    readonly check: string;
    /** Where, what, and the value. */
    readonly message: string;
    readonly remedy: string | null;
  }[];
}
/** --timeout ran out. Exit status 124. */
interface TimeoutFailure {
  readonly type: 'timeout';
  readonly seconds: number;
}
/** --spawn-timeout ran out: not every host was up, or not every rank had started. Exit status 124. */
interface SpawnTimeoutFailure {
  readonly type: 'spawn-timeout';
  readonly seconds: number;
  /** Who was late, and in which phase: "node17 (connect)", "rank 3 on node1 (spawn)". */
  readonly late: readonly string[];
}
/** --init-timeout ran out: ranks waited so long for others to join their communicator. Exit status 124. */
export interface InitTimeoutFailure {
  readonly type: 'init-timeout';
  readonly seconds: number;
  /** What they waited in: "communicator 1a2b3c4d". */
  readonly what: string;
  /** Who had not come: "rank 3 (node1)", or "rank 3" where a rank of the communicator may be any of the job. */
  readonly missing: readonly string[];
  /** What the first of the missing ranks has said on stderr last, where it is known which they are and they said something. */
  readonly stderr: { readonly rank: number; readonly tail: readonly string[] } | null;
}
/** --on-hang abort: ranks did not get on in an operation. Exit status 124. */
interface HangFailure extends Hang, MayFollowXids {
  readonly type: 'hang';
}
/** The user's signal, or nobody reads our output any more (SIGPIPE). Exit status 128 + signal: 130, 143, 129, 141. */
interface InterruptFailure {
  readonly type: 'interrupt';
  readonly signal: 'SIGINT' | 'SIGTERM' | 'SIGHUP' | 'SIGPIPE';
}
/** Our stdout or stderr takes no more bytes (a full disk, say; a broken pipe is an interrupt). Exit status 125. */
interface OutputFailure {
  readonly type: 'output';
  readonly message: string;
}
/** The operating system of this machine refused a call: a limit, a sandbox, an old kernel. Exit status 125. */
export interface SystemFailure {
  readonly type: 'system';
  readonly message: string;
  /** null: the message says it. */
  readonly remedy: string | null;
}
/** A defect of ours; never a stack trace for the user. Exit status 125. */
interface InternalFailure {
  readonly type: 'internal';
  readonly message: string;
}

export type Failure =
  | UsageFailure
  | HostfileFailure
  | AllocationFailure
  | UnrepeatableFailure
  | HostUnreachableFailure
  | AgentFailure
  | GpusBusyFailure
  | HostLostFailure
  | SpawnFailure
  | RankExitFailure
  | RankSignalFailure
  | RankMissingFailure
  | MpiAbortFailure
  | PreflightFailure
  | TimeoutFailure
  | SpawnTimeoutFailure
  | InitTimeoutFailure
  | HangFailure
  | InterruptFailure
  | OutputFailure
  | SystemFailure
  | InternalFailure;
