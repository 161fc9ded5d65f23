/** --stdin: which ranks read ours. */
import type { StdinReaders } from '../model/types.ts';
import { parseRankList } from './rank-list.ts';
import { usageError } from '../model/usage-error.ts';

/** `all`, `none`, or ranks as in `0,3-5`. Throws a FailureError (usage). */
export function stdinReaders(text: string, source: string): StdinReaders {
  if (text === 'all' || text === 'none') return { type: text };
  const ranges = parseRankList(text);
  if (ranges === null) throw usageError(`${source} is "${text}"`, 'all, none, or ranks such as 0 or 0,3-5 are wanted');
  return { type: 'ranks', ranges };
}
