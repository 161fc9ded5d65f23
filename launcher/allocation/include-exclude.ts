/** --include and --exclude, as DeepSpeed writes them: `w0@w1:0,2` is all of w0, and of w1 the slots 0 and 2. */
import { nearest } from '../cli/nearest.ts';
import type { HostSlots } from '../job/types.ts';
import { hostKey, type Hosts } from './add-up.ts';
import { hostfileError, positionIn, type SourceLine } from './diagnostic.ts';
import { parseHostWord } from './host-name.ts';
import { parseNumberRange } from './host-range.ts';
import type { Machine } from './machine.ts';
import { maximumSlots } from './number.ts';
import type { Reading } from './reading.ts';
import { head, indexOutsideBrackets, splitOutsideBrackets, tail, type Token } from './tokenize.ts';

/** Hosts by key, and which of their slots; null: all. */
type Choice = Map<string, { readonly devices: Set<number> | null; readonly word: Token }>;

/** Keeps what `text` names, in the order of `given`. Throws a FailureError (hostfile). */
export function include(given: Hosts, text: string, machine: Machine, reading: Reading): Hosts {
  const line: SourceLine = { source: '--include', line: 1, text };
  const choice = parseChoice(given, line, machine, reading);
  const hosts = given.hosts.flatMap((host) => {
    const chosen = choice.get(hostKey(host, machine));
    if (chosen === undefined) return [];
    const origin = { ...host.origin, host: `${host.origin.host}; kept by --include` };
    if (chosen.devices === null) return [{ ...host, origin }];
    return [withDevices({ ...host, origin }, [...chosen.devices], '--include')];
  });
  const left = given.hosts.filter((host) => !choice.has(hostKey(host, machine)));
  return {
    hosts,
    leftOut: [...given.leftOut, ...left.map(({ name }) => ({ name, reason: '--include does not name it' }))],
  };
}

/** Leaves out what `text` names. Throws a FailureError (hostfile). */
export function exclude(given: Hosts, text: string, machine: Machine, reading: Reading): Hosts {
  const line: SourceLine = { source: '--exclude', line: 1, text };
  const choice = parseChoice(given, line, machine, reading);
  const leftOut = [...given.leftOut];
  const hosts = given.hosts.flatMap((host) => {
    const chosen = choice.get(hostKey(host, machine));
    if (chosen === undefined) return [host];
    const rest =
      chosen.devices === null
        ? []
        : withoutDevices(host, chosen.devices, positionIn(line, chosen.word.offset, chosen.word.text.length));
    if (rest.length > 0) return [withDevices(host, rest, '--exclude')];
    leftOut.push({ name: host.name, reason: 'excluded by --exclude' });
    return [];
  });
  return { hosts, leftOut };
}

function withoutDevices(
  host: HostSlots,
  devices: ReadonlySet<number>,
  position: ReturnType<typeof positionIn>,
): number[] {
  if (host.slots === null) {
    const message = `${host.name} states no number of slots, so single ones cannot be left out`;
    throw hostfileError(message, position, `state it (${host.name}:8), or name with --include those to use`);
  }
  return Array.from({ length: host.slots }, (_, index) => index).filter((index) => !devices.has(index));
}

function withDevices(host: HostSlots, devices: readonly number[], by: string): HostSlots {
  const ofHow = host.slots === null ? '' : ` of ${host.slots}`;
  const text = `${devices.length}${ofHow} by ${by}`;
  const ascending = devices.toSorted((one, other) => one - other);
  return { ...host, slots: devices.length, devices: ascending, origin: { ...host.origin, kind: 'stated', text } };
}

function parseChoice(given: Hosts, line: SourceLine, machine: Machine, reading: Reading): Choice {
  const known = new Map(given.hosts.map((host) => [hostKey(host, machine), host]));
  const choice: Choice = new Map();
  for (const part of splitOutsideBrackets({ text: line.text, offset: 0 }, '@')) {
    const colon = indexOutsideBrackets(part.text, ':');
    const names = colon === -1 ? part : head(part, colon);
    const devices = colon === -1 ? null : parseDevices(tail(part, colon + 1), line);
    for (const word of splitOutsideBrackets(names, ',')) {
      for (const name of parseHostWord(word, line, reading).names) {
        const key = hostKey({ name, user: null }, machine);
        const host = known.get(key);
        if (host === undefined) throw unknownHost(name, word, line, known);
        for (const device of devices ?? []) checkDevice(host, device, part, line);
        const earlier = choice.get(key);
        const all = devices === null || earlier?.devices === null;
        choice.set(key, { devices: all ? null : new Set([...(earlier?.devices ?? []), ...devices]), word: part });
      }
    }
  }
  return choice;
}

function unknownHost(name: string, word: Token, line: SourceLine, known: ReadonlyMap<string, HostSlots>): Error {
  const names = Array.from(known.values(), (host) => host.name).slice(0, 1000);
  const guess = nearest(name, names);
  const shown = names.slice(0, 4).join(', ') + (known.size > 4 ? ' …' : '');
  const remedy = guess === null ? `the hosts are ${shown}` : `did you mean ${guess}?`;
  const position = positionIn(line, word.offset, word.text.length);
  return hostfileError(`${name} is none of the hosts to choose from`, position, remedy);
}

function parseDevices(token: Token, line: SourceLine): number[] {
  return splitOutsideBrackets(token, ',').flatMap((part) => {
    if (!/^[0-9]+(-[0-9]+)?$/u.test(part.text)) {
      const shown = part.text === '' ? 'the number of a slot is missing' : `"${part.text}" is not the number of a slot`;
      const position = positionIn(line, part.offset, part.text.length);
      throw hostfileError(shown, position, 'write w1:0,2 or w1:0-3, and @ before the next host: w0:0@w1');
    }
    const { first, last } = parseNumberRange(part, line);
    if (last >= maximumSlots) {
      const position = positionIn(line, part.offset, part.text.length);
      throw hostfileError(`there is no slot ${last}`, position, `slots count from 0 to ${maximumSlots - 1}`);
    }
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  });
}

function checkDevice(host: HostSlots, device: number, part: Token, line: SourceLine): void {
  if (host.slots === null || device < host.slots) return;
  const message = `${host.name} has no slot ${device}, it has ${host.slots} (${host.origin.text})`;
  const position = positionIn(line, part.offset, part.text.length);
  throw hostfileError(message, position, `its slots count from 0 to ${host.slots - 1}`);
}
