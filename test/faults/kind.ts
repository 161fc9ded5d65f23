/** What a kind of fault is: whom it strikes and when, what it does, and what is the right end of a job that it has struck. */
import type { Failure } from '../../launcher/job/failure.ts';
import type { Cluster, ClusterHost } from '../rig/cluster.ts';
import type { Command } from '../rig/command.ts';
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
  /** Whom the primary failure names: the host or the rank that had the fault, or nobody. */
  readonly names: 'host' | 'rank' | 'nobody';
}

/** A running job, and who is struck. */
export interface Scene {
  readonly cluster: Cluster;
  readonly command: Command;
  readonly host: ClusterHost;
  /** A rank of that host. */
  readonly rank: number;
  /** For the files of this job alone; every host sees it, and the ranks work in it. */
  readonly directory: string;
  readonly random: Random;
  /** Tells the ranks to end by themselves. */
  enough(): void;
}

/** What a rank does itself: see test/rig/programs/stream.c. */
export interface Deed {
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
  options?(scene: Omit<Scene, 'command'>): readonly string[];
  /** The host as it should be before the job begins. */
  prepare?(scene: Omit<Scene, 'command'>): Promise<void>;
  /** The fault, where a rank commits it itself. */
  readonly deed?: Deed;
  /** The fault, where it comes from outside. False: whom it would strike is gone already. */
  inject?(scene: Scene): Promise<boolean>;
  /** What is awaited between the fault and the job's end. */
  after?(scene: Scene): Promise<void>;
  /** The end of the fault, before it is looked for what the job has left: a frozen host cleans up when it thaws. */
  lift?(scene: Scene): Promise<void>;
  /** The cluster as it was. */
  repair?(scene: Scene): Promise<void>;
}

export const fine: Verdict = { status: 0, reason: 'ok', names: 'nobody' };
export const hostLost: Verdict = { status: 125, reason: 'host-lost', names: 'host' };
/** It did not become part of the job. */
export const notJoined: readonly Verdict[] = [
  { status: 125, reason: 'host-unreachable', names: 'host' },
  { status: 125, reason: 'agent', names: 'host' },
];
