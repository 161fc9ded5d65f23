/** When ranks began their last collectives, from their flight recorders. */
import { MAX_ARRIVALS, MAX_ARRIVING_RANKS } from '../../control/messages/hang.ts';
import type { RankArrivals } from '../../control/messages/hang.ts';
import { COLLECTIVES } from '../../control/collectives.ts';
import type { RecorderEntry } from '../../control/messages/recorder.ts';
import { beginnings } from './bursts.ts';
import { readRecorder } from './recorder.ts';

/** Records of each process that are looked at. */
const LOOKED_AT = 1024;

export function rankArrivals(recorders: readonly Uint8Array[]): RankArrivals[] {
  const found: RankArrivals[] = [];
  for (const recorder of recorders) {
    const read = readRecorder(recorder, LOOKED_AT);
    if (read === null) continue;
    for (const { index, id: communicator, epoch, size, rank } of read.communicators) {
      if (size < 2 || found.length >= MAX_ARRIVING_RANKS) continue;
      const begun = ascendingEnd(
        read.entries.filter((entry) => entry.communicator === index && isBegunCollective(entry)),
      );
      const chosen = beginnings(begun, read.entries, MAX_ARRIVALS);
      const times = chosen.map(({ entry }) => Math.round(entry.startedNs / 1000));
      const [startUs] = times;
      if (startUs === undefined) continue;
      found.push({
        communicator,
        epoch,
        size,
        jobRank: read.rank,
        rank,
        startUs,
        numbers: chosen.map(({ entry }) => entry.operation),
        afterUs: times.slice(1).map((time, before) => time - (times[before] ?? time)),
        outsideUs: chosen.slice(1).map(({ outsideNs }) => Math.round(outsideNs / 1000)),
      });
    }
  }
  return found;
}

/** Those before are of a communicator that had the same place, and is gone. */
function ascendingEnd(entries: readonly RecorderEntry[]): readonly RecorderEntry[] {
  const restart = entries.findLastIndex(({ operation }, index) => operation <= (entries[index - 1]?.operation ?? -1));
  return restart === -1 ? entries : entries.slice(restart);
}

function isBegunCollective({ startedNs, collective }: RecorderEntry): boolean {
  return startedNs !== 0 && COLLECTIVES[collective] !== 'sendRecv';
}
