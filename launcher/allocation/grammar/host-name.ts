/**
 * `[user@]host[:count]`, the part that all grammars share; the host may be a range. Names end up in command lines of ssh: whatever could
 * be read as an option or by a shell is refused here.
 */
import { hostfileError, positionIn, type SourceLine } from './diagnostic.ts';
import { expandHostRange, parseHostRange } from './host-range.ts';
import type { Reading } from './reading.ts';
import { head, indexOutsideBrackets, tail, type Token } from './tokenize.ts';

interface HostWord {
  /** At least one. */
  readonly names: readonly string[];
  readonly user: string | null;
  /** The name as written, if it has ranges. */
  readonly range: string | null;
  /** What follows the colon, not yet checked, or null. */
  readonly count: Token | null;
}

const namePattern = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}$/u;
/** A backslash stands between a domain and its user, and ssh takes none at the end. */
const userPattern = /^[A-Za-z0-9_]([A-Za-z0-9_.+@\\-]{0,253}[A-Za-z0-9_.+@-])?$/u;
const rangePattern = /\[[^\]]*\]/gu;

/** Throws a FailureError (hostfile) where `token` is no host, or `reading` has no room for so many. */
export function parseHostWord(token: Token, line: SourceLine, reading: Reading): HostWord {
  if (token.text.startsWith('ssh://')) throw noUrl(token, line);
  const at = token.text.lastIndexOf('@');
  const user = at === -1 ? null : token.text.slice(0, at);
  if (user !== null) checkUser(head(token, at), line);
  return { user, ...parseName(tail(token, at + 1), line, reading) };
}

/** Throws a FailureError (hostfile) unless `token` is a name that ssh can be given. */
export function checkUser(token: Token, line: SourceLine): void {
  if (userPattern.test(token.text)) return;
  const position = positionIn(line, token.offset, token.text.length);
  throw hostfileError(`"${token.text}" is not a user name`, position, 'write user@host');
}

function noUrl(token: Token, line: SourceLine): Error {
  const [, user = '', host = 'host', port] = /^ssh:\/\/([^@/]*@)?([^:/@]+)(?::([0-9]+))?/u.exec(token.text) ?? [];
  const position = positionIn(line, token.offset, token.text.length);
  const remedy = `write ${user}${host}${port === undefined ? '' : ` port=${port}`}`;
  return hostfileError(`"${token.text}" is a URL, and no host`, position, remedy);
}

type Named = Omit<HostWord, 'user'>;

function parseName(token: Token, line: SourceLine, reading: Reading): Named {
  // A name may begin with a range too; an address never looks like one.
  const isAddress = token.text.startsWith('[') && !/^\[[0-9][0-9,-]*\]/u.test(token.text);
  return isAddress ? parseAddress(token, line, reading) : parsePlain(token, line, reading);
}

function parseAddress(token: Token, line: SourceLine, reading: Reading): Named {
  const end = token.text.indexOf(']');
  if (end === -1) {
    const position = positionIn(line, token.offset, token.text.length);
    throw hostfileError('the "[" of an IPv6 address is not closed', position, 'write [fe80::1] or [fe80::1]:4');
  }
  const name = token.text.slice(1, end);
  const position = positionIn(line, token.offset + 1, name.length);
  if (!isAddress(name)) {
    const remedy = 'brackets hold an IPv6 address, [fe80::1], or numbers, node[1-8]';
    throw hostfileError(`"${name}" is not an IPv6 address`, position, remedy);
  }
  reading.take(1, position);
  const rest = tail(token, end + 1);
  const named = { names: [name], range: null };
  if (rest.text === '') return { ...named, count: null };
  if (rest.text.startsWith(':')) return { ...named, count: tail(rest, 1) };
  const after = positionIn(line, rest.offset, rest.text.length);
  throw hostfileError(`"${rest.text}" after "]" has no meaning`, after, 'write [fe80::1]:4 for four slots');
}

/** Eight groups of hex digits, or fewer with one `::`; a dotted IPv4 address may stand for the last two; then perhaps a scope. */
function isAddress(text: string): boolean {
  const [address = '', scope, ...more] = text.split('%');
  if (more.length > 0 || (scope !== undefined && !/^[A-Za-z0-9_.-]{1,64}$/u.test(scope))) return false;
  const halves = address.split('::');
  if (halves.length > 2) return false;
  const groups = halves.flatMap((half) => (half === '' ? [] : half.split(':')));
  const dotted = /^[0-9]{1,3}(\.[0-9]{1,3}){3}$/u.test(groups.at(-1) ?? '');
  const plain = dotted ? groups.slice(0, -1) : groups;
  const length = plain.length + (dotted ? 2 : 0);
  if (!plain.every((group) => /^[0-9A-Fa-f]{1,4}$/u.test(group))) return false;
  return halves.length === 2 ? length <= 7 : length === 8;
}

function parsePlain(token: Token, line: SourceLine, reading: Reading): Named {
  const colon = indexOutsideBrackets(token.text, ':');
  if (colon !== -1 && indexOutsideBrackets(token.text, ':', colon + 1) !== -1) throw twoColons(token, line);
  const name = colon === -1 ? token : head(token, colon);
  const count = colon === -1 ? null : tail(token, colon + 1);
  const position = positionIn(line, name.offset, name.text.length);
  if (/[[\]]/u.test(name.text)) {
    const range = parseHostRange(name, line);
    if (!namePattern.test(name.text.replaceAll(rangePattern, '0'))) throw noName(name, line);
    reading.take(range.count, position);
    return { names: expandHostRange(range), range: name.text, count };
  }
  if (!namePattern.test(name.text)) throw noName(name, line);
  reading.take(1, position);
  return { names: [name.text], range: null, count };
}

/** Throws a FailureError (hostfile) for `node1,8`, in which slots are meant: hosts that are numbers have numbers beside them. Not for lists of a resource manager. */
export function refuseNumber(name: Token, line: SourceLine): void {
  if (!/^[0-9]+$/u.test(name.text)) return;
  const [, before = ''] = /([^\s,]+)\s*,\s*$/u.exec(line.text.slice(0, name.offset)) ?? [];
  if (/^[0-9]*$/u.test(before)) return;
  const position = positionIn(line, name.offset, name.text.length);
  const remedy = `write ${before}:${name.text} for slots; a host of that name is [${name.text}]`;
  throw hostfileError(`"${name.text}" is a number, and no host`, position, remedy);
}

function twoColons(token: Token, line: SourceLine): Error {
  const position = positionIn(line, token.offset, token.text.length);
  const [, slots, adapter] = /^([^:@]+:[0-9]+):([a-z][a-z0-9_]*)$/u.exec(token.text) ?? [];
  const remedy = isAddress(token.text)
    ? `write an IPv6 address in brackets: [${token.text}]`
    : slots !== undefined
      ? `write ${slots}, and -x NCCL_IB_HCA=${adapter ?? ''} on the command line`
      : 'write host:4 for four slots, and an IPv6 address in brackets: [fe80::1]:4';
  return hostfileError(`"${token.text}" has more than one colon`, position, remedy);
}

function noName(name: Token, line: SourceLine): Error {
  const shown = name.text === '' ? 'a host name is missing' : `"${name.text}" is not a host name`;
  return hostfileError(shown, positionIn(line, name.offset, name.text.length), remedyFor(name.text));
}

function remedyFor(text: string): string {
  if (/^\+(n[0-9]+|e)$/u.test(text)) return `${text} counts the hosts of a hostfile: write --hostfile FILE -H ${text}`;
  if (/^-[A-Za-z0-9]/u.test(text)) return 'a hostfile leaves a host out with ^host; a name does not begin with a dash';
  const times = /^([A-Za-z][A-Za-z0-9_.-]*)\*([0-9]+)$/u.exec(text);
  if (times !== null) return `write ${times[1]}:${times[2]}`;
  const before = /^([0-9]+)\*([A-Za-z][A-Za-z0-9_.-]*)$/u.exec(text);
  if (before !== null) return `write ${before[2]}:${before[1]}`;
  if (/^(;|\/\/)/u.test(text)) return 'a comment begins with #';
  return 'a host name has letters, digits, dots, dashes and underscores and does not begin with a dash';
}
