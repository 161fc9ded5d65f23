/** Collectives of one communicator that differ between its ranks, and which ranks are the fewer. */
import type { CallArguments, CallHistory } from '../../control/messages/hang.ts';
import { CallComparison, hashOf } from '../../control/rendezvous/mismatch.ts';
import type { VerdictKind } from '../model/hang.ts';
import type { CommTable, Place } from './table.ts';

export interface CallDifference {
  readonly kind: VerdictKind;
  /** Number of the first collective that differs. */
  readonly at: number;
  /** The calls of that number are known: none has called more since, and what came before is alike. */
  readonly exact: boolean;
  /** Ranks by call, the fewest first. */
  readonly groups: readonly Group[];
  /** The smallest group is the only one of its size. */
  readonly hasMinority: boolean;
}

interface Group {
  readonly places: readonly Place[];
  /** One of them. */
  readonly calls: CallHistory;
  /** What they called where the groups differ; null if nobody remembers. */
  readonly call: CallArguments | null;
}

function callAt({ count, call, recent }: CallHistory, at: number): CallArguments | null {
  return count === at ? call : (recent.find(({ number }) => number === at) ?? null);
}

export function callDifference({ places }: CommTable): CallDifference | null {
  const known = places.flatMap((place) => (place.calls === null ? [] : [{ place, calls: place.calls }]));
  const compared = known.map(({ place, calls }) => ({ ...calls, rank: place.rank, pid: 0, waitingFor: null }));
  const mismatch = new CallComparison().add(compared);
  if (mismatch === null) return null;
  const { at } = mismatch;
  const byHash = new Map<number, { places: Place[]; calls: CallHistory; call: CallArguments | null }>();
  for (const { place, calls } of known) {
    const hash = hashOf(calls, at);
    if (hash === undefined) continue;
    const group = byHash.get(hash) ?? { places: [], calls, call: null };
    byHash.set(hash, group);
    group.places.push(place);
    group.call ??= callAt(calls, at);
    if (calls.count === at) group.calls = calls;
  }
  const groups = [...byHash.values()].toSorted((one, other) => one.places.length - other.places.length);
  const [fewest, next] = groups;
  if (fewest === undefined || next === undefined) return null;
  const isFirst = at === 1 || groups.every(({ calls }) => hashOf(calls, at - 1) !== undefined);
  const exact = isFirst && fewest.call !== null && next.call !== null;
  const kind = exact ? kindOf(fewest.call, next.call) : 'mismatch-order';
  return { kind, at, exact, groups, hasMinority: fewest.places.length < next.places.length };
}

function kindOf(one: CallArguments | null, other: CallArguments | null): VerdictKind {
  if (one === null || other === null || one.collective !== other.collective) return 'mismatch-order';
  if (one.type !== other.type || one.operator !== other.operator) return 'mismatch-type';
  if (one.root !== other.root) return 'mismatch-root';
  return 'mismatch-size';
}
