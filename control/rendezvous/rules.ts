/** Rules that agents and launcher share in the rendezvous: which rounds end with a communicator, and which can no longer complete. */
import { NcclResult } from '../messages/bootstrap.ts';
import { describeKey } from '../messages/key.ts';
import type { Key } from '../messages/key.ts';
import { isShrinkRound, isSplitRound, JOIN_ROUND, LeftHow } from '../messages/rendezvous.ts';
import type { PendingGather } from './collector.ts';
import type { RendezvousFailure } from './failure.ts';
import { describeDesertion } from './failure.ts';

/** False for shrinks, which complete on a broken communicator; every other round fails with it. */
export function failsWithCommunicator({ round }: Key): boolean {
  return !isShrinkRound(round);
}

/** Result of ranks that wait for a rank that left in this manner. */
export function resultOf(how: LeftHow): NcclResult {
  return how === LeftHow.differed ? NcclResult.invalidUsage : NcclResult.remoteError;
}

/** Reason to refuse a communicator under the id of a live one. */
export function inUse(key: Key): string {
  return `${describeKey(key)} is still in use: its ranks have not left it, and an id names one at a time`;
}

interface Desertion {
  /** Rank in the communicator. */
  readonly rank: number;
  readonly how: LeftHow;
  readonly failure: RendezvousFailure;
}

/**
 * Failure of a round that waits for one of the gone ranks; null if it waits for none. A rank that finalized (result ncclInvalidUsage; the
 * sentence names it) makes only splits fail, because a gather may have its contribution already.
 */
export function desertion(
  key: Key,
  gone: Iterable<readonly [rank: number, failure: RendezvousFailure]>,
  awaits: (rank: number) => boolean,
): Desertion | null {
  if (key.round === JOIN_ROUND) return null;
  for (const [rank, { result, sentence }] of gone) {
    const finalized = result === NcclResult.invalidUsage;
    if ((finalized && !isSplitRound(key.round)) || !awaits(rank)) continue;
    if (!finalized) return { rank, how: LeftHow.died, failure: { result, sentence } };
    return { rank, how: LeftHow.differed, failure: { result, sentence: describeDesertion(sentence, key) } };
  }
  return null;
}

/** Table for the ranks of a complete round: contributions by rank, empty for ranks left out. */
export function contributionsByRank({ size, entries }: PendingGather): Uint8Array[] {
  return Array.from({ length: size }, (_, rank) => entries.get(rank)?.bytes ?? new Uint8Array(0));
}
