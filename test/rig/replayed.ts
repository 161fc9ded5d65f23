/** Recorded ranks as ncclrun replay has them. */
import type { RecorderEntry } from '../../control/messages/recorder.ts';
import type { Replay, ReplayedRank } from '../../launcher/replay/read-file.ts';

export const recordedId = '00000000000000ab';

export function recordedRank(
  rank: number,
  entries: readonly RecorderEntry[],
  changes: Partial<ReplayedRank> = {},
): ReplayedRank {
  return {
    rank,
    host: `node${rank}`,
    pid: 100 + rank,
    gpu: null,
    recorded: entries.length,
    oldest: entries.length === 0 ? 0 : 1,
    unlisted: 0,
    clock: { offsetNs: 0, errorNs: 0 },
    communicators: [{ index: 0, id: recordedId, epoch: 0, size: 3, name: 'tp0', rank }],
    entries,
    replays: [],
    ...changes,
  };
}

export function recordedReplay(
  ranks: readonly ReplayedRank[],
  { size = ranks.length, name = 'tp0' }: { size?: number; name?: string } = {},
): Replay {
  const communicators = [{ id: recordedId, epoch: 0, name, size, members: `0-${ranks.length - 1}` }];
  return { jobId: null, takenAt: 0, failures: [], communicators, ranks, silent: [], omitted: 0 };
}
