/** The recorded operations of all ranks brought together: by communicator and number, times on one clock. */
import type { RecorderEntry } from '../../control/messages/recorder.ts';
import type { RecordedGroup } from '../model/recorder.ts';
import { callText, isMessage, isSend, stateOf } from './call.ts';
import type { Replay, ReplayedRank } from './read-file.ts';

/** What one rank did of an operation. Times in nanoseconds of the launcher's CLOCK_MONOTONIC; null: not yet, or not known. */
export interface Part {
  /** In the job. */
  readonly rank: number;
  readonly entry: RecorderEntry;
  readonly enqueuedNs: number;
  readonly startedNs: number | null;
  readonly endedNs: number | null;
}

/** A collective of all ranks of a communicator, or a message between two. */
export interface ReplayedOperation {
  readonly number: number;
  /** Ranks of the communicator, of a message. */
  readonly from: number | null;
  readonly to: number | null;
  /** By the ranks that recorded it, ascending. */
  readonly parts: readonly Part[];
  /** Ranks in the job that should have come, whose recorders reach as far, and did not. */
  readonly missing: readonly number[];
  /** Ranks of whom it is not known: no recorder, or the ring has wrapped. */
  readonly unknown: number;
  /** The rank that began last, of those that came; null: fewer than two did, or on GPUs nobody saw. */
  readonly last: number | null;
  /** The ranks did not call the same. */
  readonly differs: boolean;
}

export interface ReplayedCommunicator extends RecordedGroup {
  /** Rank in the communicator → rank in the job, as far as recorded. */
  readonly rankOf: ReadonlyMap<number, number>;
  readonly operations: readonly ReplayedOperation[];
}

/** A rank's view of one communicator. */
interface Member {
  readonly process: ReplayedRank;
  readonly rank: number;
  readonly entries: readonly RecorderEntry[];
}

export function replayedCommunicators(replay: Replay): ReplayedCommunicator[] {
  return replay.communicators.map((group) => {
    const members = membersOf(group, replay.ranks);
    const rankOf = new Map(members.map(({ rank, process }) => [rank, process.rank]));
    const operations = [...collectivesOf(group, members), ...messagesOf(members, rankOf)];
    return { ...group, rankOf, operations: operations.toSorted((one, other) => beginOf(one) - beginOf(other)) };
  });
}

/** When the first rank called it. */
export function beginOf({ parts }: ReplayedOperation): number {
  return Math.min(...parts.map(({ enqueuedNs }) => enqueuedNs));
}

function membersOf({ id, epoch }: RecordedGroup, processes: readonly ReplayedRank[]): Member[] {
  return processes.flatMap((process) =>
    process.communicators
      .filter((one) => one.id === id && one.epoch === epoch)
      .map(({ index, rank }) => ({
        process,
        rank,
        entries: process.entries.filter(({ communicator }) => communicator === index),
      })),
  );
}

function collectivesOf({ size }: RecordedGroup, members: readonly Member[]): ReplayedOperation[] {
  const byNumber = new Map<number, Part[]>();
  for (const { process, entries } of members)
    for (const entry of entries) if (!isMessage(entry)) add(byNumber, entry.operation, partOf(process, entry));
  const reach = members.map(({ process, entries }) => ({ rank: process.rank, first: firstKnown(process, entries) }));
  return Array.from(byNumber, ([number, parts]) => {
    const here = new Set(parts.map(({ rank }) => rank));
    const missing = reach.filter(({ rank, first }) => first <= number && !here.has(rank)).map(({ rank }) => rank);
    return operation({ number, from: null, to: null }, parts, missing, Math.max(0, size - here.size - missing.length));
  });
}

/** From this collective on, all that the rank called are known. */
function firstKnown({ oldest, entries: all }: ReplayedRank, entries: readonly RecorderEntry[]): number {
  const isWhole = oldest <= 1 && (all[0]?.sequence ?? 1) === 1;
  const [first] = entries.filter((entry) => !isMessage(entry));
  return isWhole ? 0 : (first?.operation ?? Number.POSITIVE_INFINITY);
}

function messagesOf(members: readonly Member[], rankOf: ReadonlyMap<number, number>): ReplayedOperation[] {
  const byPair = new Map<string, { from: number; to: number; number: number; parts: Part[] }>();
  for (const { process, rank, entries } of members) {
    for (const entry of entries) {
      if (!isMessage(entry)) continue;
      const [from, to] = isSend(entry) ? [rank, entry.peer] : [entry.peer, rank];
      const key = `${from}>${to}#${entry.operation}`;
      const known = byPair.get(key) ?? { from, to, number: entry.operation, parts: [] };
      byPair.set(key, known);
      known.parts.push(partOf(process, entry));
    }
  }
  return Array.from(byPair.values(), ({ parts, ...which }) => {
    const [only] = parts;
    const isAlone = which.from !== which.to && parts.length === 1 && only !== undefined;
    const other = isAlone ? rankOf.get(isSend(only.entry) ? which.to : which.from) : undefined;
    // What has ended had its other end, which the ring has lost.
    const missing = isAlone && other !== undefined && only.endedNs === null ? [other] : [];
    return operation(which, parts, missing, isAlone && missing.length === 0 ? 1 : 0);
  });
}

function operation(
  which: Pick<ReplayedOperation, 'number' | 'from' | 'to'>,
  parts: readonly Part[],
  missing: readonly number[],
  unknown: number,
): ReplayedOperation {
  const begun = parts.flatMap(({ rank, startedNs, enqueuedNs, entry }) =>
    stateOf(entry) === 'cancelled' ? [] : [{ rank, at: startedNs ?? enqueuedNs }],
  );
  const [last, before] = begun.toSorted((one, other) => other.at - one.at);
  return {
    ...which,
    parts: parts.toSorted((one, other) => one.rank - other.rank),
    missing,
    unknown,
    last: last === undefined || before === undefined ? null : last.rank,
    differs: which.from === null && new Set(parts.map(({ entry }) => `${callText(entry)} ${entry.count}`)).size > 1,
  };
}

function partOf({ rank, clock }: ReplayedRank, entry: RecorderEntry): Part {
  const ours = (its: number): number => its - (clock?.offsetNs ?? 0);
  return {
    rank,
    entry,
    enqueuedNs: ours(entry.enqueuedNs),
    startedNs: entry.startedNs === 0 ? null : ours(entry.startedNs),
    endedNs: entry.endedNs === 0 ? null : ours(entry.endedNs),
  };
}

function add<Key, Value>(map: Map<Key, Value[]>, key: Key, value: Value): void {
  const known = map.get(key);
  if (known === undefined) map.set(key, [value]);
  else known.push(value);
}
