/** Rules that the agents' rendezvous and the launcher's share: what ends with a communicator, and who is awaited in vain. */
import { NcclResult } from '../messages/bootstrap.ts';
import { describeKey } from '../messages/key.ts';
import type { Key } from '../messages/key.ts';
import { isShrinkRound, isSplitRound, JOIN_ROUND, LeftHow } from '../messages/rendezvous.ts';
import type { Gathering } from './collector.ts';
import type { RendezvousFailure } from './failure.ts';
import { describeDesertion } from './failure.ts';

/** A shrink takes place although its communicator is broken; every other round fails with it. */
export function failsWithCommunicator({ round }: Key): boolean {
  return !isShrinkRound(round);
}

/** What ranks get that wait for a rank which left like this. */
export function resultOf(how: LeftHow): NcclResult {
  return how === LeftHow.differed ? NcclResult.invalidUsage : NcclResult.remoteError;
}

/** Why a communicator cannot be made under an id that names a live one. */
export function inUse(key: Key): string {
  return `${describeKey(key)} is still in use: its ranks have not left it, and an id names one at a time`;
}

interface Desertion {
  /** In the communicator. */
  readonly rank: number;
  readonly how: LeftHow;
  readonly failure: RendezvousFailure;
}

/**
 * Why a round of a communicator cannot complete, if it awaits one of the ranks that are gone; null: it does not. A rank that finalized (result
 * ncclInvalidUsage; the sentence says who it is) makes only splits fail: a gather may have its contribution already.
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

/** What the ranks of a complete round get: by rank, its contribution; empty of those left out. */
export function contributionsByRank({ size, entries }: Gathering): Uint8Array[] {
  return Array.from({ length: size }, (_, rank) => entries.get(rank)?.bytes ?? new Uint8Array(0));
}
