/** What a kind of fault is: whom it strikes and when, what it does, and what is the right end of a job that it has struck. */
import type { Failure } from '../../launcher/model/failure.ts';
import type { JobResult } from '../../launcher/model/types.ts';
import type { Cluster, ClusterHost } from '../rig/cluster.ts';
import type { Command, Outcome } from '../rig/command.ts';
import type { Random } from '../rig/random.ts';

/** When a fault strikes. */
export const moments = ['connecting', 'spawning', 'started', 'streaming', 'teardown'] as const;
export type Moment = (typeof moments)[number];

/**
 * ends: the job ends within 10 s of the fault, with the right status, and its primary failure names who had the fault.
 * goes on: it ends with status 0 and the right output, as if nothing had been.
 * is reported: it ends as it should in the end, after what the kind itself waits for.
 */
export type FaultClass = 'ends' | 'goes on' | 'is reported';

/** One right end. */
export interface Verdict {
  readonly status: number;
  /** The result's reason; null: there is no result, the launcher was killed. */
  readonly reason: 'ok' | Failure['type'] | null;
  /** Whom the primary failure names: the host or the rank that had the fault, nobody, or whom it likes. */
  readonly names: 'host' | 'rank' | 'nobody' | 'anybody';
}

/** A running job, and who is struck. */
export interface Scene {
  readonly cluster: Cluster;
  readonly command: Command;
  readonly host: ClusterHost;
  /** A rank of that host. */
  readonly rank: number;
  /** For the files of this job alone; every host sees it. The ranks work in `work` below it. */
  readonly directory: string;
  readonly random: Random;
  /** Tells the ranks to end by themselves. */
  enough(): void;
}

/** A job that is about to begin. */
export type JobSetup = Omit<Scene, 'command'>;

/** What a rank does itself: see test/rig/programs/stream.c. */
export interface Action {
  readonly ranks: 'victim' | 'all';
  readonly what: string;
  readonly number?: number;
}

export interface Kind {
  readonly name: string;
  readonly class: FaultClass;
  /** When it may strike, and the right ends if it does. */
  readonly verdicts: Partial<Record<Moment, readonly Verdict[]>>;
  /** The host's sshd is not told that the connection is over. */
  readonly silences?: true;
  /** More options for ncclrun. */
  options?(setup: JobSetup): readonly string[];
  /** The host as it should be before the job begins. */
  prepare?(setup: JobSetup): Promise<unknown>;
  /** What ranks do themselves, at the moment of the fault; before they join where the fault comes from outside. */
  readonly action?: Action;
  /** The fault, where it comes from outside. False: whom it would strike is gone already. */
  inject?(scene: Scene): Promise<boolean>;
  /** Resolves when the job meets a fault that was there before it. */
  meets?(scene: Scene): Promise<unknown>;
  /** What is awaited between the fault and the job's end. Without it, ranks that may end with 0 are told to at once. */
  after?(scene: Scene): Promise<void>;
  /** What is wrong with the end beyond its verdict; null: nothing. */
  check?(outcome: Outcome, result: JobResult | null, scene: Scene): string | null;
  /** The end of the fault, before it is looked for what the job has left: a frozen host cleans up when it thaws. */
  lift?(scene: Scene): Promise<unknown>;
  /** The cluster as it was. */
  repair?(scene: Scene): Promise<unknown>;
}

export const fine: Verdict = { status: 0, reason: 'ok', names: 'nobody' };
export const hostLost: Verdict = { status: 125, reason: 'host-lost', names: 'host' };
/** It did not become part of the job. */
export const notJoined: readonly Verdict[] = [
  { status: 125, reason: 'host-unreachable', names: 'host' },
  { status: 125, reason: 'agent', names: 'host' },
];
