/** What the judge has found before it is put into words. */
import type { Confidence, Evidence, VerdictKind, VerdictOperation } from '../model/hang.ts';
import type { Culprit } from './culprit.ts';
import type { CommTable, Place } from './table.ts';

export interface Finding {
  readonly kind: VerdictKind;
  readonly confidence: Confidence;
  /** A rank that waits, in the operation that the verdict names. */
  readonly place: Place;
  /** The operation that the verdict names, where it is not the one of `place`. */
  readonly operation?: VerdictOperation;
  readonly culprits: readonly Culprit[];
  /** Sentences on who is to blame. */
  readonly late: readonly string[];
  /** "rank 0 on h1 waits for rank 1 on h2 (eth0 to eth0)" */
  readonly waits: readonly string[];
  /** Beside what there is of the culprits. */
  readonly evidence: readonly Evidence[];
  /** Nodes of the graph with which the waits end; a cycle in its order. */
  readonly ends: readonly number[];
}

/** The operation that most of its ranks wait in, or the later one: of the places that wait, one that has waited longest there. */
export function worstPlace({ places }: CommTable, operation?: number): Place | null {
  const waiting = places.filter((place) => place.waits);
  const latest = operation ?? Math.max(0, ...waiting.map((place) => place.operation));
  const there = waiting.filter((place) => place.operation === latest);
  return there.reduce<Place | null>((worst, place) => (place.waitedMs > (worst?.waitedMs ?? -1) ? place : worst), null);
}

/** Whom ranks of a communicator wait for, longest waits first. */
export function waitsIn({ places, byRank }: CommTable): string[] {
  const waiting = places.filter((place) => place.waits).toSorted((one, other) => other.waitedMs - one.waitedMs);
  return waiting.flatMap(({ member, waitsFor }) => {
    const peer = waitsFor === null ? undefined : byRank.get(waitsFor.rank)?.member;
    if (waitsFor === null || peer === undefined) return [];
    const nics = waitsFor.nics === null ? '' : ` (${waitsFor.nics.own} to ${waitsFor.nics.peer})`;
    return [`rank ${member.jobRank} on ${member.host} waits for rank ${peer.jobRank} on ${peer.host}${nics}`];
  });
}
