/** The pieces handed from step to step: allocation → mapping → job → result. */
import type { BusyGpusPolicy } from '../../control/messages/link.ts';
import type { PortRange } from '../../control/port-range.ts';
import type { Manager } from '../allocation/managed/manager.ts';
import type { Failure, Phase } from './failure.ts';
import type { Verdict } from './hang.ts';
import type { Forwardable } from './forwardable.ts';
import type { OutputPattern } from './output-pattern.ts';
import type { Recorder } from './recorder.ts';
import type { StackReport } from './stack.ts';
import type { JobStatus } from './status.ts';

/** Why a host is used, and why it has the slots it has, for --explain. */
export interface SlotOrigin {
  readonly kind: 'stated' | 'localhost-unlimited' | 'detected';
  /** Where the number of slots comes from. */
  readonly text: string;
  /** Where the host itself comes from. */
  readonly host: string;
}

/**
 * One host of an allocation. `slots` null: known only once its agent has said hello (GPUs, else cores). Where the origin is
 * `localhost-unlimited` the slots are what is filled first; more ranks than that may follow.
 */
export interface HostSlots {
  readonly name: string;
  /** What remote shells call it, where `name` has its port as well: one of several hosts of that name. */
  readonly target?: string;
  /** user@ of the hostfile, or null. */
  readonly user: string | null;
  readonly port: number | null;
  readonly slots: number | null;
  readonly maxSlots: number | null;
  /** Counts behind a colon, so large that they may be meant for ports. */
  readonly perhapsPorts?: readonly number[];
  /** The numbers of the host's slots (and GPUs) that its ranks are to use, ascending, as --include w0:0,2 says; null: any. */
  readonly devices: readonly number[] | null;
  /** Where it was mentioned, for --map-by seq: of all hosts' mentions the lesser number comes first. */
  readonly mentions?: readonly number[];
  /** This machine: its agent runs in the launcher. */
  readonly local: boolean;
  /** The resource manager that starts its agent; where there is none, a remote shell does. */
  readonly manager?: 'slurm';
  /** srun's option that asks for all GPUs of the job on it; null: Slurm did not say; left out where a step gets them without it. */
  readonly gpuOption?: string | null;
  /** How many those are; left out where that is not known. */
  readonly gpuCount?: number;
  /** The GPUs of each task, where Slurm binds tasks to GPUs; left out where each may see all of the job's. */
  readonly taskGpus?: TaskGpus;
  /** It is this machine, and its agent a process of its own, as if it were another one. */
  readonly simulated?: true;
  /** Where its slots are not known yet: how many it has if it turns out to have no GPU; else as many as it has cores. */
  readonly slotsWithoutGpus?: number;
  readonly origin: SlotOrigin;
}

/**
 * How a host's GPUs are dealt to tasks, by local rank. `perTask`: `gpus` to each, one after the other; `single`: one to each, `tasks` of them share
 * one; `turns`: the tasks take these in turn.
 */
export type TaskGpus =
  | { readonly type: 'perTask'; readonly gpus: number }
  | { readonly type: 'single'; readonly tasks: number }
  | { readonly type: 'turns'; readonly turns: readonly (readonly number[])[] };

export interface Allocation {
  readonly hosts: readonly HostSlots[];
}

/** Ranks from `first` to `last`, both included. */
export interface RankRange {
  readonly first: number;
  readonly last: number;
}

/** rank → host, with the local numbering. */
export interface MappedRank {
  readonly rank: number;
  readonly host: number;
  /** Which of the job's programs it runs. */
  readonly program: number;
  readonly localRank: number;
  readonly localSize: number;
  /** NUMA node it was dealt to, by number; null where ranks are not dealt to such. */
  readonly numa: number | null;
  /** Its GPU as CUDA numbers them, where that was decided; else it is its local rank's. */
  readonly gpu: number | null;
}

export interface RankMap {
  /** Hosts that got at least one rank, in allocation order. */
  readonly hosts: readonly HostSlots[];
  /** Ordered by rank; `host` indexes `hosts`. */
  readonly ranks: readonly MappedRank[];
}

/** --stdin: who reads our stdin. */
export type StdinReaders =
  | { readonly type: 'all' }
  | { readonly type: 'none' }
  | { readonly type: 'ranks'; readonly ranges: readonly RankRange[] };

/** How ranks are dealt out. */
export type MapBy =
  | { readonly by: 'slot' | 'node' | 'numa' | 'gpu' | 'seq' }
  /** `count` ranks for each node, NUMA node or GPU. */
  | { readonly by: 'ppr'; readonly count: number; readonly object: 'node' | 'numa' | 'gpu' };

/** One of the programs that `:` separates on the command line, with what may be said of each alone. */
export interface ProgramRequest {
  /** Program and arguments as typed. */
  readonly argv: readonly string[];
  readonly ranks: number | null;
  /** `gpu`: as many as the host has GPUs. */
  readonly ranksPerHost: number | 'gpu' | null;
  /** -x in the order given: VAR, VAR=value, PFX*. */
  readonly exports: readonly string[];
  readonly workingDirectory: string | null;
  /** Its own -H; null: any host of the job. */
  readonly hostList: string | null;
}

/** What the user asked for, after flags, environment and configuration are merged. */
/** Hosts that this machine plays, and how many slots and GPUs each has. */
export interface SimulatedHosts {
  readonly hosts: number;
  readonly slots: number;
}

export interface JobRequest {
  /** At least one. Ranks go on counting from one to the next. */
  readonly programs: readonly ProgramRequest[];
  readonly hostList: string | null;
  readonly hostfile: string | null;
  /** null: the hosts are real ones. */
  readonly simulated: SimulatedHosts | null;
  /** Who has given us the hosts that the others pick from; null: nobody. */
  readonly manager: Manager | null;
  readonly timeoutSeconds: number | null;
  /** How long ranks may wait for others to join their communicator; null: for ever. */
  readonly initTimeoutSeconds: number | null;
  /** The result has what the ranks' flight recorders held when something went wrong. */
  readonly recordsFailures: boolean;
  /** All of every rank that they held, not the last ones alone. */
  readonly recordsAll: boolean;
  /** Ranks hang that do not get on in an operation for so long. */
  readonly hangAfterSeconds: number;
  /** How often ranks are looked for that begin operations late. */
  readonly stragglerWindowSeconds: number;
  readonly onHang: 'report' | 'abort' | 'restart' | 'ignore';
  /** How often a job that ranks or hosts made fail is started again. */
  readonly maxRestarts: number;
  /** The other ranks go on when one fails, or a host is lost. */
  readonly shrinks: boolean;
  readonly graceSeconds: number;
  /** `auto`: a prefix `[rank]` where there is more than one rank. */
  readonly tagOutput: 'auto' | 'none' | 'rank' | 'host';
  /** Whose output is shown; null: everybody's. */
  readonly outputRanks: readonly RankRange[] | null;
  readonly timestampOutput: boolean;
  /** Where output goes beside the terminal. */
  readonly outputFiles: readonly OutputPattern[];
  /** False: it goes to `outputFiles` only. */
  readonly outputShown: boolean;
  readonly mergeStderr: boolean;
  readonly fold: boolean;
  readonly live: boolean;
  readonly stdin: StdinReaders;
  /** auto, ssh2, openssh, or a command. */
  readonly rsh: string;
  /** With more hosts than this, agents start agents, each so many; 0: they never do. */
  readonly radix: number;
  /** Ports on which everything of the job listens; null: the system chooses. */
  readonly portRange: PortRange | null;
  /** A host without ncclrun gets it. */
  readonly stage: boolean;
  readonly mapBy: MapBy;
  readonly rankBy: 'slot' | 'node' | 'numa' | null;
  readonly bindTo: 'none' | 'core' | 'numa' | 'gpu';
  readonly reportBindings: boolean;
  readonly isolateGpus: boolean;
  readonly busyGpus: BusyGpusPolicy;
  /** --include and --exclude as given. */
  readonly include: string | null;
  readonly exclude: string | null;
  readonly spawnTimeoutSeconds: number | null;
  readonly forwardSignals: readonly Forwardable[];
  readonly oversubscribe: boolean;
  /** A CommPlan to use instead of the planner's (binary or JSON), or null. */
  readonly planFile: string | null;
  /** Whose NCCL the ranks use: ours, or what they come with. */
  readonly engine: 'none' | 'ncclrun';
  /** How MPI programs find the other ranks. */
  readonly pmi: 'none' | 'pmi1';
  /** --collnet and --collnet-hosts; null: the job has no aggregators. */
  readonly aggregators: AggregatorRequest | null;
}

interface AggregatorRequest {
  /** null: one on each of their hosts. */
  readonly count: number | null;
  /** Where they run, as -H has it; null: the launcher decides. */
  readonly hostList: string | null;
}

export interface HostResult {
  readonly name: string;
  readonly ranks: readonly number[];
  readonly state: 'ok' | 'failed' | 'lost';
}

export interface RankResult {
  readonly rank: number;
  readonly host: string;
  readonly pid: number | null;
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  /** ISO 8601, or null if it never started. */
  readonly startedAt: string | null;
  readonly endedAt: string | null;
  /** We ended it because of another failure. */
  readonly endedByUs: boolean;
}

export interface JobResult {
  readonly schemaVersion: 1;
  readonly jobId: string;
  readonly ok: boolean;
  /** 'ok' or the type of the primary failure. */
  readonly reason: 'ok' | Failure['type'];
  readonly exitCode: number;
  /** How often it was started again. What follows is about the last attempt. */
  readonly restarts: number;
  readonly failures: readonly Failure[];
  /** What was found out about hangs, calls that differ, failures and slow ranks, in the order of the events. */
  readonly verdicts: readonly Verdict[];
  readonly hosts: readonly HostResult[];
  readonly ranks: readonly RankResult[];
  /** Milliseconds spent in each phase. */
  readonly phases: Readonly<Record<Phase, number>>;
  /** What the ranks' flight recorders held when something went wrong; only for --report. */
  readonly recorder?: Recorder;
}

/** One way of telling what happens; main.ts composes them. */
export interface Reporter {
  /** It is known who runs where, and nothing runs yet. Rejects with a FailureError where the job must not start. */
  prepare?(map: RankMap): Promise<void>;
  event(event: import('./event.ts').JobEvent): void;
  /**
   * Resolves when the bytes have been taken; the job gives the ranks credit for them then. Rejects with a FailureError
   * (interrupt, SIGPIPE) when nobody reads them any more: the job ends.
   */
  output(chunk: import('./event.ts').OutputChunk): Promise<void>;
  result(result: JobResult): Promise<void>;
  /** What the ranks have recorded so far is had from there until the result. */
  recorders?(read: () => Promise<Recorder>): void;
  /** The same for stacks; of all ranks for null. */
  stacks?(read: (ranks: readonly number[] | null) => Promise<StackReport>): void;
  /** How the job's ranks fare, from there until the result. */
  status?(read: () => Promise<JobStatus>): void;
  /** A line typed at the terminal went to rank 0: on the screen it ended whatever line was open. */
  typed?(): void;
  /** After the result: what could not be written, where that does not concern the job. */
  unwritten?(): Failure | null;
}
