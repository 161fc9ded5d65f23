/** --rank of `ncclrun logs` and `attach`. */
import type { RunningJob } from '../jobs/find.ts';
import type { RankRange } from '../model/types.ts';
import { usageError } from '../model/usage-error.ts';
import { parseRankList } from './rank-list.ts';

/** Null: all of them. Throws a FailureError (usage) for what is no list, and for ranks that the job does not have. */
export function followedRanks(text: string | null, { jobId, hosts }: RunningJob): readonly RankRange[] | null {
  if (text === null) return null;
  const list = parseRankList(text);
  if (list === null) throw usageError(`--rank is "${text}"`, 'ranks such as 0,3-5 are wanted');
  const size = hosts.reduce((sum, { ranks }) => sum + ranks.length, 0);
  const beyond = list.find(({ last }) => last >= size);
  if (beyond === undefined) return list;
  const has = size === 1 ? 'rank 0 only' : `ranks 0 to ${size - 1}`;
  throw usageError(`--rank names rank ${beyond.last}; job ${jobId} has ${has}`, 'name ranks of the job');
}
