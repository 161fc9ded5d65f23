/** --stdin: which ranks read ours. */
import type { Failure } from '../model/failure.ts';
import type { JobRequest, RankMap } from '../model/types.ts';

/** Who reads our stdin, if `exists`. */
export function stdinReader({ stdin }: JobRequest, exists: boolean): (rank: number) => boolean {
  if (stdin.type === 'none' || !exists) return () => false;
  if (stdin.type === 'all') return () => true;
  return (rank) => stdin.ranges.some(({ first, last }) => rank >= first && rank <= last);
}

/** --stdin names a rank that does not exist; null where all do, or their number is not known yet. */
export function noSuchReader({ stdin }: JobRequest, map: RankMap | null): Failure | null {
  if (stdin.type !== 'ranks' || map === null) return null;
  const size = map.ranks.length;
  const beyond = stdin.ranges.find(({ last }) => last >= size);
  if (beyond === undefined) return null;
  const remedy = `ranks are 0${size > 1 ? ` to ${size - 1}` : ' alone'}; or write --stdin all`;
  return { type: 'usage', message: `--stdin names rank ${beyond.last}, and there is none`, remedy };
}
