/** Why a key or a communicator failed, as every rank that waits for it is told. */
import type { NcclResult } from '../messages/bootstrap.ts';

export interface RendezvousFailure {
  readonly result: NcclResult;
  /** Names ranks and hosts, and the values seen. */
  readonly sentence: string;
}

/** "rank 2 (node1, pid 4711)" */
export function describeRank(rank: number, host: string, pid: number): string {
  return `rank ${rank} (${host}, pid ${pid})`;
}

/** "0, 1, 2 and 5 more" */
export function listRanks(ranks: readonly number[], shown = 8): string {
  const first = ranks.slice(0, shown).join(', ');
  return ranks.length > shown ? `${first} and ${ranks.length - shown} more` : first;
}
