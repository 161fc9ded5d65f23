/** Open MPI's hostfiles: `[user@]host [slots=N] [max_slots=N | max-slots=N] [port=N]`, `^host` excludes. */
import { hostfileError, positionIn, type SourceLine } from './diagnostic.ts';
import type { HostEntry } from './entry.ts';
import { parseHostWord } from './host-name.ts';
import { parsePort, parseSlots } from './number.ts';
import type { Token } from './tokenize.ts';

const knownKeys = 'after a host may follow slots=N, max_slots=N and port=N';

/** `tokens` are one line's, at least one. Throws a FailureError (hostfile). */
export function parseOpenMpiLine(tokens: readonly Token[], line: SourceLine): HostEntry | null {
  const [first, ...rest] = tokens;
  if (first === undefined) return null;
  const exclude = first.text.startsWith('^');
  const word: Token = exclude ? { text: first.text.slice(1), offset: first.offset + 1 } : first;
  const host = parseHostWord(word, line);
  if (host.count !== null) return null;
  const settings = parseSettings(rest, line);
  const position = positionIn(line, first.offset, first.text.length);
  if (exclude && rest.length > 0) {
    throw hostfileError('an excluded host has no settings', position, `write ^${host.name} alone on its line`);
  }
  return { kind: exclude ? 'exclude' : 'use', name: host.name, user: host.user, ...settings, position };
}

interface LineSettings {
  readonly slots: number | null;
  readonly maxSlots: number | null;
  readonly port: number | null;
}

function parseSettings(tokens: readonly Token[], line: SourceLine): LineSettings {
  let slots: number | null = null;
  let maxSlots: number | null = null;
  let port: number | null = null;
  const seen = new Set<string>();
  for (let i = 0; i < tokens.length; ) {
    const { key, value, next } = readPair(tokens, i, line);
    const name = key.text.replace('-', '_');
    if (seen.has(name)) {
      const position = positionIn(line, key.offset, key.text.length);
      throw hostfileError(`${key.text} is stated twice for one host`, position, 'keep one of them');
    }
    seen.add(name);
    if (name === 'slots') slots = parseSlots(value, 'the number of slots', line);
    else if (name === 'max_slots') maxSlots = parseSlots(value, 'the greatest number of slots', line);
    else if (name === 'port') port = parsePort(value, line);
    else throw hostfileError(`unknown setting "${key.text}"`, positionIn(line, key.offset, key.text.length), knownKeys);
    if (slots !== null && maxSlots !== null && maxSlots < slots) {
      const message = `max_slots is ${maxSlots}, less than slots, which is ${slots}`;
      throw hostfileError(message, positionIn(line, value.offset, value.text.length), 'raise max_slots or lower slots');
    }
    i = next;
  }
  return { slots, maxSlots, port };
}

function readPair(
  tokens: readonly Token[],
  start: number,
  line: SourceLine,
): { key: Token; value: Token; next: number } {
  const key = tokens[start] ?? { text: '', offset: line.text.length };
  const equals = tokens[start + 1];
  if (equals?.text !== '=' || key.text === '=') {
    const message = `"${key.text}" is not a setting of a host`;
    throw hostfileError(message, positionIn(line, key.offset, key.text.length), `one host per line; ${knownKeys}`);
  }
  const value = tokens[start + 2];
  if (value === undefined || value.text === '=') {
    const position = positionIn(line, equals.offset, 1);
    throw hostfileError(`${key.text} has no value`, position, `write ${key.text}=N`);
  }
  return { key, value, next: start + 3 };
}
