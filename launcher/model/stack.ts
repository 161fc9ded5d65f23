/** Stacks of a job's ranks. */
import type { RankStack } from '../../control/messages/stack.ts';

export interface HostRankStack extends RankStack {
  readonly host: string;
}

export interface StackReport {
  readonly schemaVersion: 1;
  /** Milliseconds since 1970. */
  readonly takenAt: number;
  /** By rank. */
  readonly ranks: readonly HostRankStack[];
  /** Ranks that were asked for, and whose hosts have not answered: `3,8-15`; empty: none. */
  readonly missing: string;
}
