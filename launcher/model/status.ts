/** What `ncclrun status` says of a running job: its communicators grouped by equal shape and state, and the ranks that stand out. */
import type { Verdict } from './hang.ts';

/** running: it made progress between two readings. waiting: it is in an operation without. idle: it is in none. Others: the process cannot go on. */
export type RankCondition = 'running' | 'waiting' | 'idle' | 'stopped' | 'frozen' | 'uninterruptible' | 'dead';

/** Ranks of a communicator that are alike. */
export interface ConditionShare {
  readonly condition: RankCondition;
  readonly count: number;
  /** Longest wait of them, in seconds; 0: they do not wait. */
  readonly seconds: number;
}

/** Communicators of equal size, number of hosts and state. */
export interface CommunicatorGroup {
  readonly count: number;
  /** Those with the lowest numbers of ranks; at most 16. */
  readonly ids: readonly string[];
  /** Ranks of each. */
  readonly size: number;
  readonly hosts: number;
  /** The condition of most ranks first. */
  readonly shares: readonly ConditionShare[];
  /** Operations that their ranks began last, and the name of the latest one; null: none has begun any. */
  readonly operations: { readonly lowest: number; readonly highest: number; readonly collective: string } | null;
}

/** Ranks of one communicator in another state than most of it: at most a quarter, and ten. */
export interface Outlier {
  /** Ranks of the job. */
  readonly ranks: string;
  readonly hosts: readonly string[];
  readonly communicator: string;
  readonly condition: RankCondition;
  readonly seconds: number;
  /** Their last operation there, and the one of most other ranks; null: none. */
  readonly operation: number | null;
  readonly others: number | null;
  readonly collective: string | null;
}

export interface JobStatus {
  readonly schemaVersion: 1;
  /** Milliseconds since 1970. */
  readonly takenAt: number;
  readonly ranks: number;
  readonly hosts: number;
  /** Hosts that did not answer within a second. */
  readonly silent: readonly string[];
  readonly outliers: readonly Outlier[];
  readonly groups: readonly CommunicatorGroup[];
  /** Ranks that have no communicator. */
  readonly without: number;
  readonly verdicts: readonly Verdict[];
}
