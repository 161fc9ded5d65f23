/** Failure of a key or a communicator, which every waiting rank receives. */
import { describeKey } from '../messages/key.ts';
import type { Key } from '../messages/key.ts';
import type { NcclResult } from '../messages/bootstrap.ts';
import { isShrinkRound } from '../messages/rendezvous.ts';

export interface RendezvousFailure {
  readonly result: NcclResult;
  /** Sentence with the ranks, hosts and values seen. */
  readonly sentence: string;
}

/** "rank 2 (node1, pid 4711)" */
export function describeRank(rank: number, host: string, pid: number): string {
  return `rank ${rank} (${host}, pid ${pid})`;
}

/** Reason of a split's failure: `who` has finalized the communicator. */
export function describeDesertion(who: string, split: Key): string {
  const call = isShrinkRound(split.round) ? 'ncclCommShrink' : 'ncclCommSplit';
  return `the ranks’ calls differ: ${who} called ncclCommFinalize where others called ${call} (${describeKey(split)})`;
}

/** "0, 1, 2 and 5 more" */
export function listRanks(ranks: readonly number[], shown = 8): string {
  if (ranks.length === 0) return 'nobody';
  const first = ranks.slice(0, shown).join(', ');
  return ranks.length > shown ? `${first} and ${ranks.length - shown} more` : first;
}
