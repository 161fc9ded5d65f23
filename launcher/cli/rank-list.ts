/** Ranks as people list them: `0,3-5`. */
import type { RankRange } from '../model/types.ts';

/** Null for what is no such list. */
export function parseRankList(text: string): readonly RankRange[] | null {
  const found: RankRange[] = [];
  for (const part of text.split(',')) {
    const [, from, to = from] = /^\s*([0-9]{1,9})(?:-([0-9]{1,9}))?\s*$/u.exec(part) ?? [];
    const first = Number(from);
    const last = Number(to);
    if (from === undefined || last < first) return null;
    found.push({ first, last });
  }
  return found;
}
