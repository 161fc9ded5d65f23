/**
 * The lists of -H: hosts as in a hostfile's line (`a:8,user@b:8,[fe80::1]:4,node[1-4]`), and besides
 *
 *     ^FILE        the hosts of a file (pdsh)
 *     -host        not this one (pdsh)
 *     +n0, +e:2    hosts by their place in the hostfile, and so many that the list does not name (Open MPI)
 */
import type { SourcePosition } from '../../model/failure.ts';
import { hostfileError, positionIn, type SourceLine } from './diagnostic.ts';
import type { HostEntry } from './entry.ts';
import { parseHostWord, refuseNumber } from './host-name.ts';
import { parseHostfile } from './hostfile.ts';
import { readHosts, type LauncherMachine } from './machine.ts';
import { parseSlots } from './number.ts';
import type { Reading } from './reading.ts';
import { splitOutsideBrackets, tail, type Token } from './tokenize.ts';

/** A host by its place in the hostfile, or (`empty`) `count` of those that the list does not name; null: all of them. */
export interface RelativeHost {
  readonly kind: 'relative';
  readonly which: number | 'empty';
  /** Of a numbered host its slots, null: not stated. */
  readonly count: number | null;
  readonly position: SourcePosition;
}

export type ListItem = HostEntry | RelativeHost;

/** Throws a FailureError (hostfile) with the place in the list. */
export function parseHostList(list: string, machine: LauncherMachine, reading: Reading, source = '-H'): ListItem[] {
  const line: SourceLine = { source, line: 1, text: list };
  return splitOutsideBrackets({ text: list, offset: 0 }, ',').flatMap((word): ListItem[] => {
    if (word.text === '') {
      throw hostfileError('a host name is missing', positionIn(line, word.offset, 1), 'write -H host1,host2:4');
    }
    if (word.text.startsWith('^')) return parseFile(tail(word, 1), line, machine, reading);
    if (word.text.startsWith('+')) return [parseRelative(word, line)];
    return parseHosts(word, line, reading);
  });
}

function parseHosts(word: Token, line: SourceLine, reading: Reading): HostEntry[] {
  const blank = word.text.search(/\s/u);
  if (blank !== -1) throw blankInside(word, blank, line);
  refuseNumber(word, line);
  const kind = /^-[A-Za-z0-9_]/u.test(word.text) ? 'exclude' : 'use';
  const { names, user, range, count } = parseHostWord(kind === 'exclude' ? tail(word, 1) : word, line, reading);
  const position = positionIn(line, word.offset, word.text.length);
  if (kind === 'exclude' && count !== null) {
    throw hostfileError('a host that is left out has no count', position, `write ${word.text.split(':', 1)[0]}`);
  }
  const slots = count === null ? null : parseSlots(count, 'the number of slots', line);
  return names.map((name) => ({
    kind,
    name,
    user,
    port: null,
    slots,
    colonCount: slots,
    maxSlots: null,
    range,
    position,
  }));
}

function blankInside(word: Token, blank: number, line: SourceLine): Error {
  const position = positionIn(line, word.offset + blank, 1);
  const [first = '', ...rest] = word.text.split(/\s+/u);
  const slots = /^slots=([0-9]+)$/u.exec(rest.join(''));
  const remedy = slots === null ? [first, ...rest].join(',') : `${first}:${slots[1]}`;
  return hostfileError(`a blank after ${first}, in a list without blanks`, position, `write ${remedy}`);
}

function parseFile(path: Token, line: SourceLine, machine: LauncherMachine, reading: Reading): HostEntry[] {
  const position = positionIn(line, path.offset - 1, path.text.length + 1);
  if (path.text === '') throw hostfileError('the name of a file is missing', position, 'write ^FILE');
  const remedy = `in a list ^ begins a file's name; to leave a host out, write -${path.text} or --exclude ${path.text}`;
  return parseHostfile(readHosts(path.text, machine, position, remedy), path.text, reading);
}

function parseRelative(word: Token, line: SourceLine): RelativeHost {
  const position = positionIn(line, word.offset, word.text.length);
  const [, empty, index, colon] = /^\+(?:(e)|n([0-9]{1,9}))(:.*)?$/iu.exec(word.text) ?? [];
  if (empty === undefined && index === undefined) {
    const remedy =
      'write +n0 for the first host of the hostfile, +e for its hosts not named here, +e:2 for two of them';
    throw hostfileError(`"${word.text}" is no relative host`, position, remedy);
  }
  const what = empty === undefined ? 'the number of slots' : 'the number of hosts';
  const count = colon === undefined ? null : parseSlots(tail(word, word.text.indexOf(':') + 1), what, line);
  return { kind: 'relative', which: index === undefined ? 'empty' : Number(index), count, position };
}
