/**
 * Brings the clocks of hosts closer together than the agents' readings could. An all-reduce ends at about the same moment at all its ranks, because
 * nobody has the result before everybody has contributed: the median difference of the ends at two hosts is what their clocks differ by. A
 * correction stays within the error of the readings, which are a bound.
 */
import { COLLECTIVES } from '../../control/collectives.ts';
import { type Part, type ReplayedCommunicator, replayedCommunicators } from './operations.ts';
import type { Replay } from './read-file.ts';

const ALL_REDUCE = COLLECTIVES.indexOf('allReduce');
/** Of fewer a median says little. */
const MIN_ENDS = 8;

export function alignedCommunicators(replay: Replay): {
  replay: Replay;
  communicators: readonly ReplayedCommunicator[];
} {
  const communicators = replayedCommunicators(replay);
  const hostOf = new Map(replay.ranks.map(({ rank, host }) => [rank, host]));
  const shifts = shiftsOf(replay, communicators, (part) => hostOf.get(part.rank) ?? '');
  if (shifts.size === 0) return { replay, communicators };
  const ranks = replay.ranks.map((one) => {
    const shift = shifts.get(one.host);
    if (shift === undefined || one.clock === null) return one;
    return { ...one, clock: { offsetNs: one.clock.offsetNs + shift.byNs, errorNs: shift.errorNs } };
  });
  const aligned = { ...replay, ranks };
  return { replay: aligned, communicators: replayedCommunicators(aligned) };
}

interface Shift {
  readonly byNs: number;
  readonly errorNs: number;
}

/** By host: by how much its clock is further ahead of the first host's than was read. */
function shiftsOf(
  replay: Replay,
  communicators: readonly ReplayedCommunicator[],
  hostOf: (part: Part) => string,
): Map<string, Shift> {
  const clocks = new Map(replay.ranks.map(({ host, clock }) => [host, clock]));
  const [reference] = Array.from(clocks).toSorted(
    ([, one], [, other]) => (one?.errorNs ?? Infinity) - (other?.errorNs ?? Infinity),
  );
  const differences = new Map<string, number[]>();
  for (const { operations } of communicators) {
    for (const { parts, differs } of operations) {
      if (differs || parts[0]?.entry.collective !== ALL_REDUCE) continue;
      const ends = Map.groupBy(
        parts.filter(({ endedNs }) => endedNs !== null),
        hostOf,
      );
      const first = lastEnd(ends.get(reference?.[0] ?? ''));
      if (first === null) continue;
      for (const [host, own] of ends) {
        const end = lastEnd(own);
        if (end !== null && host !== reference?.[0])
          differences.set(host, [...(differences.get(host) ?? []), end - first]);
      }
    }
  }
  const shifts = new Map<string, Shift>();
  for (const [host, all] of differences) {
    const bound = clocks.get(host)?.errorNs ?? 0;
    if (all.length < MIN_ENDS || bound === 0) continue;
    const sorted = all.toSorted((one, other) => one - other);
    const at = (share: number): number => sorted[Math.floor(share * (sorted.length - 1))] ?? 0;
    const byNs = Math.max(-bound, Math.min(bound, at(0.5)));
    shifts.set(host, { byNs, errorNs: Math.min(bound, Math.ceil((at(0.75) - at(0.25)) / 2) + 1) });
  }
  return shifts;
}

function lastEnd(parts: readonly Part[] | undefined): number | null {
  const ends = (parts ?? []).flatMap(({ endedNs }) => endedNs ?? []);
  return ends.length === 0 ? null : Math.max(...ends);
}
