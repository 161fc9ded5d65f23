/** --include and --exclude, as DeepSpeed writes them: `w0@w1:0,2` is all of w0, and of w1 the slots 0 and 2. */
import type { HostSlots } from '../../model/types.ts';
import { hostKey, type Hosts } from '../slots/add-up.ts';
import { hostfileError, positionIn, type SourceLine } from '../grammar/diagnostic.ts';
import { parseChoice } from './filter-choice.ts';
import type { LauncherMachine } from '../grammar/machine.ts';

/** Keeps what `text` names, in the order of `given`. Throws a FailureError (hostfile). */
export function include(given: Hosts, text: string, machine: LauncherMachine): Hosts {
  const line: SourceLine = { source: '--include', line: 1, text };
  const choice = parseChoice(given, line, machine);
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
export function exclude(given: Hosts, text: string, machine: LauncherMachine): Hosts {
  const line: SourceLine = { source: '--exclude', line: 1, text };
  const choice = parseChoice(given, line, machine);
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
