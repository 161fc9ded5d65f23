/** When ranks began their last collectives, from their flight recorders. */
import { MAX_ARRIVALS, MAX_ARRIVING_RANKS } from '../../control/messages/hang.ts';
import type { RankArrivals } from '../../control/messages/hang.ts';
import { COLLECTIVES } from '../../control/plan/layout.ts';
import type { RecorderEntry } from '../../control/messages/recorder.ts';
import { readRecorder } from './recorder.ts';

/** Records of each process that are looked at. */
const LOOKED_AT = 1024;

export function rankArrivals(recorders: readonly Uint8Array[]): RankArrivals[] {
  const found: RankArrivals[] = [];
  for (const recorder of recorders) {
    const read = readRecorder(recorder, LOOKED_AT);
    if (read === null) continue;
    const inside = intervals(read.entries);
    for (const { index, id: communicator, epoch, size, rank } of read.communicators) {
      const begun = read.entries.filter(
        (entry) =>
          entry.communicator === index && entry.startedNs !== 0 && COLLECTIVES[entry.collective] !== 'sendRecv',
      );
      const last = withoutGaps(begun.slice(-MAX_ARRIVALS));
      const [first] = last;
      if (first === undefined || size < 2 || found.length >= MAX_ARRIVING_RANKS) continue;
      const times = last.map(({ startedNs }) => Math.round(startedNs / 1000));
      const [startUs = 0] = times;
      const afterUs = times.slice(1).map((time, before) => time - (times[before] ?? time));
      const outsideUs = last
        .slice(1)
        .map(({ startedNs }, before) => outside(inside, last[before]?.startedNs ?? startedNs, startedNs));
      const name = { communicator, epoch, size, jobRank: read.rank, rank };
      found.push({ ...name, first: first.operation, startUs, afterUs, outsideUs });
    }
  }
  return found;
}

/** The last ones whose numbers follow each other. */
function withoutGaps<Entry extends { readonly operation: number }>(entries: readonly Entry[]): readonly Entry[] {
  const gap = entries.findLastIndex((entry, index) => {
    const next = entries[index + 1];
    return next !== undefined && next.operation !== entry.operation + 1;
  });
  return entries.slice(gap + 1);
}

interface Interval {
  readonly fromNs: number;
  readonly toNs: number;
}

/** When a process was in some operation, in order and without overlaps. */
function intervals(entries: readonly RecorderEntry[]): Interval[] {
  const joined: { fromNs: number; toNs: number }[] = [];
  const begun = entries
    .filter(({ startedNs }) => startedNs !== 0)
    .toSorted((one, other) => one.startedNs - other.startedNs);
  for (const { startedNs: fromNs, endedNs } of begun) {
    const toNs = endedNs === 0 ? Number.POSITIVE_INFINITY : endedNs;
    const last = joined.at(-1);
    if (last !== undefined && fromNs <= last.toNs) last.toNs = Math.max(last.toNs, toNs);
    else joined.push({ fromNs, toNs });
  }
  return joined;
}

/** Microseconds between two moments that lie in no interval. */
function outside(inside: readonly Interval[], fromNs: number, toNs: number): number {
  let left = Math.max(0, toNs - fromNs);
  for (const interval of inside) {
    if (interval.fromNs >= toNs) break;
    left -= Math.max(0, Math.min(toNs, interval.toNs) - Math.max(fromNs, interval.fromNs));
  }
  return Math.max(0, Math.round(left / 1000));
}
