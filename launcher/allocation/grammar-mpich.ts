/** MPICH's hostfiles and the elements of -H lists: `[user@]host[:n]`. */
import { hostfileError, positionIn, type SourceLine } from './diagnostic.ts';
import type { HostEntry } from './entry.ts';
import { parseHostWord } from './host-name.ts';
import { parseSlots } from './number.ts';
import type { Token } from './tokenize.ts';

/** `tokens` are one line's, at least one. Throws a FailureError (hostfile). */
export function parseMpichLine(tokens: readonly Token[], line: SourceLine): HostEntry | null {
  const [first, second] = tokens;
  if (first === undefined) return null;
  const entry = parseMpichWord(first, line);
  if (second === undefined) return entry;
  const message = `"${second.text}" after ${first.text} has no meaning`;
  const remedy = 'state slots in one way: host:4, or host slots=4';
  throw hostfileError(message, positionIn(line, second.offset, second.text.length), remedy);
}

/** One `host[:n]`. Throws a FailureError (hostfile). */
export function parseMpichWord(token: Token, line: SourceLine): HostEntry {
  const host = parseHostWord(token, line);
  const slots = host.count === null ? null : parseSlots(host.count, 'the number of slots', line);
  const position = positionIn(line, token.offset, token.text.length);
  return { kind: 'use', name: host.name, user: host.user, port: null, slots, maxSlots: null, position };
}
