/**
 * Of the collectives of a rank those that tell when it came. Where several follow each other at once, as when gradients are summed one by one,
 * only the first does: all ranks begin the others together, because they have waited for the last one.
 */
import type { RecorderEntry } from '../../control/messages/recorder.ts';

/** With fewer beginnings than this nobody is judged, so all collectives are taken. */
const MIN_BEGINNINGS = 20;
/** Of the time outside before a usual beginning: less is within a burst. */
const BURST_PART = 0.1;

interface Beginning<Entry> {
  readonly entry: Entry;
  /** How long the process was in no operation since the beginning before; of the first since the collective before, if there is one. */
  readonly outsideNs: number;
}

type Timed = Pick<RecorderEntry, 'startedNs' | 'endedNs'>;

/** The last `count` beginnings at most. `begun`: collectives of one communicator in order; `all`: every operation of the process. */
export function beginnings<Entry extends Timed>(
  begun: readonly Entry[],
  all: readonly Timed[],
  count: number,
): Beginning<Entry>[] {
  const inside = timeInside(all);
  const outsideUntil = begun.map(({ startedNs }) => startedNs - inside(startedNs));
  const outside = outsideUntil.map((until, index) => Math.max(0, until - (outsideUntil[index - 1] ?? until)));
  const least = usualOf(outside) * BURST_PART;
  const first = begun.flatMap((_, index) => ((outside[index] ?? 0) >= least && index > 0 ? [index] : []));
  const chosen = (first.length < MIN_BEGINNINGS ? [...begun.keys()] : first).slice(-count);
  let seen = (chosen[0] ?? 0) - 1;
  return chosen.flatMap((index) => {
    const entry = begun[index];
    const outsideNs = outside.slice(seen + 1, index + 1).reduce((sum, part) => sum + part, 0);
    seen = index;
    return entry === undefined ? [] : [{ entry, outsideNs }];
  });
}

/** So long are the gaps, or longer, that make up half of all time outside. */
function usualOf(outside: readonly number[]): number {
  let left = outside.reduce((sum, part) => sum + part, 0) / 2;
  return outside.toSorted((one, other) => other - one).find((part) => (left -= part) <= 0) ?? 0;
}

/** How long until a moment the process had been in some operation; asked for later and later moments. */
function timeInside(all: readonly Timed[]): (untilNs: number) => number {
  const begun = all.filter(({ startedNs }) => startedNs !== 0);
  const ordered = begun.toSorted((one, other) => one.startedNs - other.startedNs);
  let next = 0;
  let sum = 0;
  let fromNs = 0;
  let toNs = 0;
  return (untilNs) => {
    for (let entry = ordered[next]; entry !== undefined && entry.startedNs <= untilNs; entry = ordered[++next]) {
      const endedNs = entry.endedNs === 0 ? Number.POSITIVE_INFINITY : entry.endedNs;
      if (entry.startedNs > toNs) {
        sum += toNs - fromNs;
        fromNs = entry.startedNs;
        toNs = endedNs;
      } else {
        toNs = Math.max(toNs, endedNs);
      }
    }
    return sum + Math.max(0, Math.min(untilNs, toNs) - fromNs);
  };
}
