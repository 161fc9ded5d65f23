/** The lists of -H: `a:8,user@b:8,[fe80::1]:4`. */
import { hostfileError, positionIn, type SourceLine } from './diagnostic.ts';
import type { HostEntry } from './entry.ts';
import { parseMpichWord } from './grammar-mpich.ts';
import { splitAtCommas } from './tokenize.ts';

/** Throws a FailureError (hostfile) with the place in the list. */
export function parseHostList(list: string): HostEntry[] {
  const line: SourceLine = { source: '-H', line: 1, text: list };
  return splitAtCommas(list).map((token) => {
    if (token.text !== '') return parseMpichWord(token, line);
    throw hostfileError('a host name is missing', positionIn(line, token.offset, 1), 'write -H host1,host2:4');
  });
}
