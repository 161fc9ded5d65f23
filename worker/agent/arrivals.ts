/** When ranks began their last collectives, from their flight recorders. */
import { MAX_ARRIVALS, MAX_ARRIVING_RANKS } from '../../control/messages/hang.ts';
import type { RankArrivals } from '../../control/messages/hang.ts';
import { COLLECTIVES } from '../../control/plan/layout.ts';
import { readRecorder } from './recorder.ts';

/** Records of each process that are looked at. */
const LOOKED_AT = 1024;

export function rankArrivals(recorders: readonly Uint8Array[]): RankArrivals[] {
  const found: RankArrivals[] = [];
  for (const recorder of recorders) {
    const read = readRecorder(recorder, LOOKED_AT);
    if (read === null) continue;
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
      found.push({ communicator, epoch, size, jobRank: read.rank, rank, first: first.operation, startUs, afterUs });
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
