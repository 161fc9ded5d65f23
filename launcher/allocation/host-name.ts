/**
 * `[user@]host[:count]`, the part that all grammars share. Names end up in command lines of ssh: whatever could be read as an option
 * or by a shell is refused here.
 */
import { hostfileError, positionIn, type SourceLine } from './diagnostic.ts';
import type { Token } from './tokenize.ts';

export interface HostWord {
  readonly name: string;
  readonly user: string | null;
  /** What follows the colon, not yet checked, or null. */
  readonly count: Token | null;
}

const namePattern = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}$/u;
const userPattern = /^[A-Za-z0-9_][A-Za-z0-9_.+@-]{0,254}$/u;
const addressPattern = /^[0-9A-Fa-f]*:[0-9A-Fa-f:.]*(%[A-Za-z0-9_.-]{1,64})?$/u;

/** Throws a FailureError (hostfile) where `token` is no host. */
export function parseHostWord(token: Token, line: SourceLine): HostWord {
  const at = token.text.lastIndexOf('@');
  const user = at === -1 ? null : token.text.slice(0, at);
  if (user !== null && !userPattern.test(user)) {
    const position = positionIn(line, token.offset, at);
    throw hostfileError(`"${user}" is not a user name`, position, 'write user@host');
  }
  const rest: Token = { text: token.text.slice(at + 1), offset: token.offset + at + 1 };
  if (rest.text.startsWith('[')) return { user, ...parseBracketed(rest, line) };
  return { user, ...parsePlain(rest, line) };
}

function parseBracketed(token: Token, line: SourceLine): { name: string; count: Token | null } {
  const end = token.text.indexOf(']');
  if (end === -1) {
    const position = positionIn(line, token.offset, token.text.length);
    throw hostfileError('the "[" of an IPv6 address is not closed', position, 'write [fe80::1] or [fe80::1]:4');
  }
  const name = token.text.slice(1, end);
  if (!addressPattern.test(name)) {
    const position = positionIn(line, token.offset + 1, name.length);
    throw hostfileError(`"${name}" is not an IPv6 address`, position, 'only IPv6 addresses are written in brackets');
  }
  const tail = token.text.slice(end + 1);
  if (tail === '') return { name, count: null };
  if (tail.startsWith(':')) return { name, count: { text: tail.slice(1), offset: token.offset + end + 2 } };
  const position = positionIn(line, token.offset + end + 1, tail.length);
  throw hostfileError(`"${tail}" after "]" has no meaning`, position, 'write [fe80::1]:4 for four slots');
}

function parsePlain(token: Token, line: SourceLine): { name: string; count: Token | null } {
  const colon = token.text.indexOf(':');
  if (colon !== token.text.lastIndexOf(':')) {
    const position = positionIn(line, token.offset, token.text.length);
    const remedy = `write an IPv6 address in brackets: [${token.text}]`;
    throw hostfileError(`"${token.text}" has more than one colon`, position, remedy);
  }
  const name = colon === -1 ? token.text : token.text.slice(0, colon);
  if (!namePattern.test(name)) {
    const shown = name === '' ? 'a host name is missing' : `"${name}" is not a host name`;
    const remedy = 'a host name has letters, digits, dots, dashes and underscores and does not begin with a dash';
    throw hostfileError(shown, positionIn(line, token.offset, name.length), remedy);
  }
  if (colon === -1) return { name, count: null };
  return { name, count: { text: token.text.slice(colon + 1), offset: token.offset + colon + 1 } };
}
