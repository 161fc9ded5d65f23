/** Which hosts, and which of their slots, an --include or --exclude names: `w0@w1:0,2`; names may be ranges or lists. */
import { nearest } from '../../text/nearest.ts';
import type { HostSlots } from '../../model/types.ts';
import { hostKey, type Hosts } from '../slots/add-up.ts';
import { hostfileError, positionIn, type SourceLine } from '../grammar/diagnostic.ts';
import { parseHostWord } from '../grammar/host-name.ts';
import { parseNumberRange } from '../grammar/host-range.ts';
import { namesAmong } from '../slots/same-host.ts';
import type { LauncherMachine } from '../grammar/machine.ts';
import { maximumSlots } from '../grammar/number.ts';
import { maximumSlotsInAll, Reading } from '../grammar/reading.ts';
import { head, indexOutsideBrackets, splitOutsideBrackets, tail, type Token } from '../grammar/tokenize.ts';

/** By the host's key. */
type Choice = Map<
  string,
  {
    /** Numbers of slots; null: all of them. */
    readonly devices: Set<number> | null;
    /** What names the host, for messages. */
    readonly word: Token;
  }
>;

/** Throws a FailureError (hostfile) for a host or slot that is not there. An --exclude may name who is left out already. */
export function parseChoice(given: Hosts, line: SourceLine, machine: LauncherMachine): Choice {
  const known = new Map(given.hosts.map((host) => [hostKey(host, machine), host]));
  const gone = new Map(given.leftOut.map(({ name, reason }) => [hostKey({ name, user: null }, machine), reason]));
  const reading = new Reading();
  const nameOf = namesAmong(given.hosts);
  const choice: Choice = new Map();
  let chosen = 0;
  for (const part of splitOutsideBrackets({ text: line.text, offset: 0 }, '@')) {
    const colon = indexOutsideBrackets(part.text, ':');
    const devices = colon === -1 ? null : parseDevices(tail(part, colon + 1), line);
    for (const word of splitOutsideBrackets(colon === -1 ? part : head(part, colon), ',')) {
      const { names } = parseHostWord(word, line, reading);
      chosen += names.length * (devices?.length ?? 0);
      if (chosen > maximumSlotsInAll) throw tooManySlots(chosen, part, line);
      for (const name of names) {
        const key = hostKey({ name: nameOf(name), user: null }, machine);
        const host = known.get(key);
        const reason = gone.get(key);
        if (host === undefined && reason !== undefined && line.source === '--exclude') continue;
        if (host === undefined) throw unknownHost(name, reason, word, line, known);
        checkDevices(host, devices ?? [], part, line);
        const earlier = choice.get(key);
        const all = devices === null || earlier?.devices === null;
        choice.set(key, { devices: all ? null : new Set([...(earlier?.devices ?? []), ...devices]), word: part });
      }
    }
  }
  return choice;
}

function unknownHost(
  name: string,
  reason: string | undefined,
  word: Token,
  line: SourceLine,
  known: ReadonlyMap<string, HostSlots>,
): Error {
  const position = positionIn(line, word.offset, word.text.length);
  if (reason !== undefined) {
    return hostfileError(`${name} is left out already: ${reason}`, position, 'decide for one of the two');
  }
  const names = Array.from(known.values(), (host) => host.name).slice(0, 1000);
  const guess = nearest(name, names);
  const shown = names.slice(0, 4).join(', ') + (known.size > 4 ? ' …' : '');
  const remedy = guess === null ? `the hosts are ${shown}` : `did you mean ${guess}?`;
  return hostfileError(`${name} is none of the hosts to choose from`, position, remedy);
}

function parseDevices(token: Token, line: SourceLine): number[] {
  const devices = new Set<number>();
  for (const part of splitOutsideBrackets(token, ',')) {
    const position = positionIn(line, part.offset, part.text.length);
    if (!/^[0-9]+(-[0-9]+)?$/u.test(part.text)) {
      const shown = part.text === '' ? 'the number of a slot is missing' : `"${part.text}" is not the number of a slot`;
      throw hostfileError(shown, position, 'write w1:0,2 or w1:0-3, and @ before the next host: w0:0@w1');
    }
    const { first, last } = parseNumberRange(part, line);
    if (last >= maximumSlots) {
      throw hostfileError(`there is no slot ${last}`, position, `slots count from 0 to ${maximumSlots - 1}`);
    }
    for (let device = first; device <= last; device += 1) devices.add(device);
  }
  return [...devices];
}

function checkDevices(host: HostSlots, devices: readonly number[], part: Token, line: SourceLine): void {
  const slots = host.slots;
  const beyond = slots === null ? undefined : devices.find((device) => device >= slots);
  if (slots === null || beyond === undefined) return;
  const message = `${host.name} has no slot ${beyond}, it has ${slots} (${host.origin.text})`;
  const position = positionIn(line, part.offset, part.text.length);
  throw hostfileError(message, position, `its slots count from 0 to ${slots - 1}`);
}

function tooManySlots(chosen: number, part: Token, line: SourceLine): Error {
  const position = positionIn(line, part.offset, part.text.length);
  return hostfileError(`this names ${chosen} slots`, position, `at most ${maximumSlotsInAll} are possible`);
}
