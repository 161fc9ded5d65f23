/** The recorded operations of all ranks brought together: by communicator and number, times on one clock. */
import type { RecorderEntry } from '../../control/messages/recorder.ts';
import type { RecordedGroup } from '../model/recorder.ts';
import { callText, isMessage, isSend, stateOf } from './call.ts';
import type { Replay, ReplayedRank, ReplayedRing } from './read-file.ts';

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
  /** Of a replayed graph: these are numbered apart from the program's calls. */
  readonly isReplay: boolean;
  readonly number: number;
  /** Of a replayed collective: so many others precede it in its launch, which has a number of its own for each. */
  readonly place: number;
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

/** A rank's view of one communicator, of one ring: its calls, or what its graphs replayed. */
interface Member {
  readonly process: ReplayedRank;
  readonly rank: number;
  readonly ring: ReplayedRing;
  readonly entries: readonly RecorderEntry[];
}

export function replayedCommunicators(replay: Replay): ReplayedCommunicator[] {
  return replay.communicators.map((group) => {
    const members = membersOf(group, replay.ranks, (process) => [process]);
    const replayed = membersOf(group, replay.ranks, replaysOf);
    const rankOf = new Map(members.map(({ rank, process }) => [rank, process.rank]));
    const operations = [members, replayed].flatMap((own, index) =>
      own.some(({ entries }) => entries.length > 0)
        ? [...collectivesOf(group, own, index === 1), ...messagesOf(own, rankOf, index === 1)]
        : [],
    );
    return { ...group, rankOf, operations: operations.toSorted((one, other) => beginOf(one) - beginOf(other)) };
  });
}

/** `12`; of a replayed graph `g12`, and `g12.1` where another one precedes it in its launch. */
export function numberText({ isReplay, number, place }: ReplayedOperation): string {
  return isReplay ? `g${number}${place === 0 ? '' : `.${place}`}` : `${number}`;
}

/** When the first rank called it. */
export function beginOf({ parts }: ReplayedOperation): number {
  return parts.reduce((least, { enqueuedNs }) => Math.min(least, enqueuedNs), Number.POSITIVE_INFINITY);
}

function membersOf(
  { id, epoch }: RecordedGroup,
  processes: readonly ReplayedRank[],
  ringsOf: (process: ReplayedRank) => readonly ReplayedRing[],
): Member[] {
  return processes.flatMap((process) =>
    process.communicators
      .filter((one) => one.id === id && one.epoch === epoch)
      .flatMap(({ index, rank }) =>
        ringsOf(process).map((ring) => ({
          process,
          rank,
          ring,
          entries: ring.entries.filter(({ communicator }) => communicator === index),
        })),
      ),
  );
}

/** A rank whose GPU records, but has no ring, replayed nothing. */
function replaysOf({ replays, gpuErrorNs }: ReplayedRank): readonly ReplayedRing[] {
  return replays.length === 0 && gpuErrorNs !== undefined ? [{ oldest: 1, entries: [] }] : replays;
}

/** Places of a launch are numbered each by itself: in a launch a place may be empty. */
function collectivesOf({ size }: RecordedGroup, members: readonly Member[], isReplay: boolean): ReplayedOperation[] {
  const placeOf = (entry: RecorderEntry): number => (isReplay ? entry.stream : 0);
  const byNumber = new Map<string, { number: number; place: number; parts: Part[] }>();
  for (const { process, entries } of members) {
    for (const entry of entries) {
      if (isMessage(entry)) continue;
      const [number, place] = [entry.operation, placeOf(entry)];
      const known = byNumber.get(`${number}.${place}`) ?? { number, place, parts: [] };
      byNumber.set(`${number}.${place}`, known);
      known.parts.push(partOf(process, entry));
    }
  }
  const reach = members.map(({ process, ring, entries }) => ({
    rank: process.rank,
    first: firstKnown(
      ring,
      entries.filter((entry) => !isMessage(entry)),
      placeOf,
    ),
  }));
  return Array.from(byNumber.values(), ({ number, place, parts }) => {
    const here = new Set(parts.map(({ rank }) => rank));
    const missing = reach
      .filter(({ rank, first }) => first(place) <= number && !here.has(rank))
      .map(({ rank }) => rank);
    const which = { isReplay, number, place, from: null, to: null };
    return operation(which, parts, [...new Set(missing)], Math.max(0, size - here.size - missing.length));
  });
}

/** From this collective of a place on, all that the rank called are known. */
function firstKnown(
  { oldest, entries: all }: ReplayedRing,
  collectives: readonly RecorderEntry[],
  placeOf: (entry: RecorderEntry) => number,
): (place: number) => number {
  if (oldest <= 1 && (all[0]?.sequence ?? 1) === 1) return () => 0;
  const first = new Map<number, number>();
  for (const entry of collectives) if (!first.has(placeOf(entry))) first.set(placeOf(entry), entry.operation);
  return (place) => first.get(place) ?? Number.POSITIVE_INFINITY;
}

function messagesOf(
  members: readonly Member[],
  rankOf: ReadonlyMap<number, number>,
  isReplay: boolean,
): ReplayedOperation[] {
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
  return Array.from(byPair.values(), ({ parts, ...pair }) => {
    const which = { ...pair, isReplay, place: 0 };
    const [only] = parts;
    const isAlone = which.from !== which.to && parts.length === 1 && only !== undefined;
    const other = isAlone ? rankOf.get(isSend(only.entry) ? which.to : which.from) : undefined;
    // What has ended had its other end, which the ring has lost.
    const missing = isAlone && other !== undefined && only.endedNs === null ? [other] : [];
    return operation(which, parts, missing, isAlone && missing.length === 0 ? 1 : 0);
  });
}

function operation(
  which: Pick<ReplayedOperation, 'isReplay' | 'number' | 'place' | 'from' | 'to'>,
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
